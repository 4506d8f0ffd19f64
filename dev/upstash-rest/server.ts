/**
 * A local server that speaks the REST API of Upstash Redis over any Redis, so that the clients
 * made for Upstash (`@upstash/redis`, `@upstash/ratelimit`) run offline, unchanged.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RedisHandle, startRedis } from '../redis.ts'
import { requireToken } from './auth.ts'
import { connect } from './connection.ts'
import { answer, type Services } from './routes.ts'
import { withScriptFlags } from './scripts.ts'

/** Longer than the idle time of usual clients, so that none reuses a socket just closed. */
const KEEP_ALIVE_MS = 75_000

export interface UpstashRestOptions {
  /** 0 takes a free port. */
  readonly port: number
  /** What callers must present. Not empty. */
  readonly token: string
  /** The Redis to use; stays open on `close()`. Without it, one is chosen, started and owned. */
  readonly redis?: Pick<RedisHandle, 'url'>
  /** The address to listen on. Default `127.0.0.1`. */
  readonly host?: string
}

/** A running server. */
export interface UpstashRest {
  /** `http://host:port`, for `UPSTASH_REDIS_REST_URL`. */
  readonly url: string
  readonly token: string
  /** Ends open requests and streams, and the Redis that was started for it. */
  close(): Promise<void>
}

/** Starts the server. Throws if the port is taken, the token is empty or Redis does not answer. */
export async function startUpstashRest(options: UpstashRestOptions): Promise<UpstashRest> {
  const { port, token, host = '127.0.0.1' } = options
  if (token === '') throw new TypeError('startUpstashRest: the token must not be empty')
  const owned = options.redis === undefined ? await startRedis() : undefined
  const redis = options.redis ?? (owned as RedisHandle)
  try {
    const connection = await connect(redis.url)
    const services: Services = {
      connection: withScriptFlags(connection),
      requireToken: requireToken(token),
      nextSyncToken: syncTokens(),
    }
    const server = createServer((request, response) => void answer(request, response, services))
    server.keepAliveTimeout = KEEP_ALIVE_MS
    await listen(server, port, host).catch((error) => {
      connection.close()
      throw error
    })
    return {
      url: `http://${host}:${(server.address() as AddressInfo).port}`,
      token,
      async close() {
        const closed = new Promise((resolve) => server.close(resolve))
        server.closeAllConnections()
        await closed
        connection.close()
        await owned?.close()
      },
    }
  } catch (error) {
    await owned?.close()
    throw error
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE'
      reject(taken ? new Error(`port ${port} on ${host} is already in use`) : error)
    })
    server.listen(port, host, resolve)
  })
}

/** Redis has one copy of the data here, so the token only has to change. */
function syncTokens(): () => string {
  const start = randomUUID()
  let count = 0
  return () => `${start}:${(count++).toString(36)}`
}
