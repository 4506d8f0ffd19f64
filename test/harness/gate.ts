/**
 * A TCP proxy before a node of Redis. A test decides, by the address of a connection, whether bytes pass, wait
 * or are answered. Bytes that wait arrive later, as after a partition of the network.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { createCommandReader } from './command-reader.ts'
import type { Mode } from './control.ts'

export interface Gate {
  readonly host: string
  readonly port: number
  /** Sets what happens to connections, open ones too. `hang`: their bytes wait, in both directions. */
  set(modeOf: (from: string) => Mode): void
  close(): Promise<void>
}

export interface GateOptions {
  readonly host: string
  readonly port: number
  readonly target: number
  /** Called with the commands that arrive together, in every mode. */
  readonly onCommands?: (commands: readonly (readonly string[])[]) => void
}

/** The answer to each command in the mode `error`, which needs `onCommands`. */
const ERROR = '-ERR secret-detail\r\n'

export async function startGate({ host, port, target, onCommands }: GateOptions): Promise<Gate> {
  const open = new Set<{ apply(): void; destroy(): void }>()
  let modeOf: (from: string) => Mode = () => 'serve'

  const server = createServer((client) => {
    const from = client.remoteAddress ?? ''
    const mode = () => modeOf(from)
    if (mode() === 'refuse') return void client.destroy()
    const upstream = connect(target, '127.0.0.1')
    const both = [client, upstream] as const
    const connection = {
      apply() {
        if (mode() === 'refuse') connection.destroy()
        for (const socket of both)
          if (mode() === 'hang') socket.pause()
          else socket.resume()
      },
      destroy() {
        open.delete(connection)
        for (const socket of both) socket.destroy()
      },
    }
    open.add(connection)
    const read = createCommandReader()
    client.on('data', (data) => {
      // Only what decides needs the commands: other traffic is larger.
      const commands = onCommands === undefined ? [] : read(data)
      onCommands?.(commands)
      if (mode() === 'error') client.write(ERROR.repeat(commands.length))
      else upstream.write(data)
    })
    upstream.on('data', (data) => client.write(data))
    for (const socket of both) {
      socket.setNoDelay()
      socket.on('close', connection.destroy)
      socket.on('error', connection.destroy)
    }
    connection.apply()
  }).listen(port, host)
  await once(server, 'listening')
  return {
    host,
    port,
    set(next) {
      modeOf = next
      for (const connection of [...open]) connection.apply()
    },
    async close() {
      server.close()
      for (const connection of [...open]) connection.destroy()
      if (server.listening) await once(server, 'close')
    },
  }
}
