/** A gateway with open streams on each runtime, and raw clients that see how a stream ends. */
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { createApiKeys } from '../../src/access/tokens/redis/api-keys.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { RUNTIMES, startGateway } from '../harness/gateway.ts'
import { dial } from '../origin/wire.ts'
import { startStreamOrigin } from './origin.ts'
import { streamPolicy } from './policy.ts'

export { RUNTIMES }
export type StreamRuntimeName = (typeof RUNTIMES)[number]

/** What a client has received of a response. */
export interface Received {
  /** Everything from the status line on. */
  text(): string
  /** Resolves when the connection has ended, to the time in milliseconds since the epoch. */
  readonly ended: Promise<number>
  leave(): void
}

export interface ClosedSocket {
  readonly code: number
  readonly reason: string
  readonly atMs: number
}

export type StreamGateway = Awaited<ReturnType<typeof startStreamGateway>>

export async function startStreamGateway(runtime: StreamRuntimeName, maxStalenessMs = 0) {
  const origin = await startStreamOrigin()
  /** Calls to Redis by what the names of their keys end with. */
  const calls = new Map<string, number>()
  const gateway = await startGateway({
    runtime,
    onRedisCall(commands) {
      for (const [part, count] of calls)
        if (commands.includes(`:${part}"`)) calls.set(part, count + 1)
    },
    policy: streamPolicy(maxStalenessMs),
    entry: join(import.meta.dirname, 'worker.ts'),
    publicUrl: 'own',
    signs: true,
    origin,
    variables:
      runtime === 'workerd'
        ? { MAX_STALENESS_MS: String(maxStalenessMs) }
        : { TRUSTED_PROXIES: '127.0.0.1' },
  })
  const { redis, port, url } = gateway
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })

  /** The client's address, as each runtime receives it. */
  const addressFields = (address: string) => ({
    'cf-connecting-ip': address,
    'x-forwarded-for': address,
  })

  return {
    url,
    port,
    redis,
    rest,
    origin,
    revocations: createRevocations(rest, Date.now),
    apiKeys: createApiKeys({ redis: rest, publicUrl: url, now: Date.now }),
    token: (claims: object = {}) => gateway.token({ claims: { ...claims } }),

    /** Returns a function that returns how many calls to Redis had a key whose name ends with `part`, since now. */
    callsAbout(part: string): () => number {
      calls.set(part, 0)
      return () => calls.get(part) ?? 0
    },

    /** Sends a request and returns when its response has begun. */
    async open(
      path: string,
      token?: string,
      { method = 'GET', body = '', headers = {}, address = '192.0.2.1' } = {},
    ): Promise<Received> {
      const fields = {
        Host: `127.0.0.1:${port}`,
        ...addressFields(address),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(body !== '' && {
          'Content-Type': 'application/json',
          'Content-Length': String(body.length),
        }),
        ...headers,
      }
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
      const socket = await dial(port, `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
      let text = ''
      let begun = () => {}
      const beginning = new Promise<void>((resolve) => {
        begun = resolve
      })
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk
        if (text.includes('\r\n\r\n')) begun()
      })
      const ended = new Promise<number>((resolve) => {
        socket.on('close', () => {
          begun()
          resolve(Date.now())
        })
      })
      if (!path.endsWith('/late')) await beginning
      return { text: () => text, ended, leave: () => void socket.destroy() }
    },

    async openSocket(path: string, token?: string, address = '192.0.2.1') {
      const headers = {
        ...addressFields(address),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      }
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers })
      const closed = new Promise<ClosedSocket>((resolve) => {
        socket.on('close', (code, reason) =>
          resolve({ code, reason: reason.toString(), atMs: Date.now() }),
        )
      })
      await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))
      return { socket, closed }
    },

    close: gateway.close,
  }
}

/** Whether a response is complete by its framing. */
export function isComplete(text: string): boolean {
  const at = text.indexOf('\r\n\r\n')
  const [head, body] = [text.slice(0, at), text.slice(at + 4)]
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  return length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
}

/** A request of an MCP client that its server never answers. */
export const pendingCall = (id: number | string) => ({
  method: 'POST',
  body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'wait' } }),
  headers: { Accept: 'application/json, text/event-stream' },
})
