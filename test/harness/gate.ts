/**
 * A TCP proxy before a node of Redis. A test decides, by the address or the user of a connection, whether bytes
 * pass, wait or are answered. Bytes that wait arrive later, as after a partition of the network.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { createCommandReader } from './command-reader.ts'
import type { Mode } from './control.ts'

export interface Gate {
  readonly host: string
  readonly port: number
  /**
   * Sets what happens to connections, open ones too. `from` is the user of a client that has logged in, and else
   * the address. `hang`: their bytes wait, in both directions.
   */
  set(modeOf: (from: string) => Mode): void
  close(): Promise<void>
}

export interface GateOptions {
  readonly host: string
  readonly port: number
  readonly target: number
  /** Whether clients connect here, which speak RESP, and not the bus of the cluster. */
  readonly isOfClients?: boolean
  /** Called with the commands that arrive together on a connection, in every mode. Only of clients. */
  readonly onCommands?: (commands: readonly (readonly string[])[], connection: object) => void
}

/** The answer to each command in the mode `error`, which only clients get. */
const ERROR = '-ERR secret-detail\r\n'

/** Returns the user that a command logs in. */
const userIn = ([name, user, password]: readonly string[]): string | undefined =>
  name?.toUpperCase() === 'AUTH' && password !== undefined ? user : undefined

export async function startGate({
  host,
  port,
  target,
  isOfClients = false,
  onCommands = () => {},
}: GateOptions): Promise<Gate> {
  const open = new Set<{ apply(): void; destroy(): void }>()
  let modeOf: (from: string) => Mode = () => 'serve'

  const server = createServer((client) => {
    let from = client.remoteAddress ?? ''
    const mode = () => modeOf(from)
    if (mode() === 'refuse') return void client.destroy()
    const upstream = connect(target, '127.0.0.1')
    const both = [client, upstream] as const
    let held: Buffer = Buffer.alloc(0)
    const connection = {
      apply() {
        if (mode() === 'serve' && held.length > 0) {
          upstream.write(held)
          held = Buffer.alloc(0)
        }
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
      const commands = isOfClients ? read(data) : []
      const user = commands.map(userIn).find((name) => name !== undefined)
      if (user !== undefined) {
        from = user
        connection.apply()
        if (mode() === 'refuse') return
      }
      onCommands(commands, connection)
      if (mode() === 'error') client.write(ERROR.repeat(commands.length))
      // With a new user, this is the login: it may wait here, and everything behind it in the socket.
      else if (mode() === 'hang') held = Buffer.concat([held, data])
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
