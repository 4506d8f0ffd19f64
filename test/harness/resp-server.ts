/** A TCP server that replies to RESP as a test wants, and real Redis servers with options. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { REDIS_SERVER } from '../../dev/redis.ts'
import { freePort } from './process.ts'

export const hasRedisServer = spawnSync(REDIS_SERVER, ['--version']).status === 0

const HEALTHY = 'redis_version:7.2.0\r\nrole:master\r\ncluster_enabled:0\r\n'
export const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`

export interface StubServer {
  readonly url: string
  readonly port: number
  /** What arrived after the handshake, one text for each read of a socket. */
  readonly received: string[]
  /** Number of accepted connections. */
  connections(): number
  close(): Promise<void>
}

/** A mark of `reply-marks.ts`. It is not in `received`. */
const MARK = /\*2\r\n\$4\r\nECHO\r\n\$\d+\r\n(\S+)\r\n/

/**
 * Starts a server that answers `INFO` with `info`, and all else that arrives on a connection by
 * `respond`, once for the commands before each mark. The mark gets `echo`, if `respond` has
 * written something.
 */
export async function startStubServer(
  respond: (socket: Socket, text: string) => void,
  info: string = bulk(HEALTHY),
  echo: (mark: string) => string = bulk,
): Promise<StubServer> {
  const sockets = new Set<Socket>()
  const received: string[] = []
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', (data) => {
      const text = data.toString()
      if (/^\*1\r\n\$4\r\ninfo\r\n$/i.test(text)) return void socket.write(info)
      const parts = text.split(MARK)
      received.push(parts.filter((_, at) => at % 2 === 0).join(''))
      for (let at = 0; at < parts.length; at += 2) {
        const [commands = '', mark] = parts.slice(at, at + 2)
        const before = socket.bytesWritten
        if (commands !== '') respond(socket, commands)
        if (mark !== undefined && socket.bytesWritten > before && socket.writable)
          socket.write(echo(mark))
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    received,
    connections: () => connections,
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

export interface RealServer {
  readonly port: number
  readonly process: ChildProcess
  /** Kills the server and waits for its end. */
  close(): Promise<void>
}

/** Starts `redis-server` without persistence, and waits until it prints that it accepts connections. */
export async function startRealServer(
  args: readonly string[],
  given?: number,
  host = '127.0.0.1',
): Promise<RealServer> {
  const port = given ?? (await freePort())
  const isSentinel = args.includes('--sentinel')
  const settings = isSentinel ? [] : ['--port', String(port), '--save', '', '--bind', host]
  const child = spawn(REDIS_SERVER, [...args, ...settings], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await new Promise<void>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
      if (/Ready to accept connections|\+monitor master/.test(text)) resolve()
    })
    child.once('exit', () => reject(new Error(`${REDIS_SERVER} has ended: ${text}`)))
  })
  return {
    port,
    process: child,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Returns a direct connection. Close it with `disconnect()`. */
export function directTo(port: number, password?: string, host = '127.0.0.1'): Redis {
  const redis = new Redis({ port, host, ...(password !== undefined && { password }) })
  redis.on('error', () => {})
  return redis
}
