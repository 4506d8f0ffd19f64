/**
 * A local server that provides the REST API of Upstash Redis over any Redis. The unchanged clients
 * for Upstash (`@upstash/redis`, `@upstash/ratelimit`) can use it offline.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RedisHandle, startRedis } from '../redis.ts'
import { requireToken } from './auth.ts'
import { connect } from './connection.ts'
import { answer, type Services } from './routes.ts'
import { withScriptFlags } from './scripts.ts'

/** Longer than the idle timeout of usual clients, so that no client reuses a closed socket. */
const KEEP_ALIVE_MS = 75_000

export interface UpstashRestOptions {
  /** 0 selects a free port. */
  readonly port: number
  /** The token that callers must present. Not empty. */
  readonly token: string
  /** The Redis to use. `close()` does not stop it. Without it, the server starts its own Redis. */
  readonly redis?: Pick<RedisHandle, 'url'>
  /**
   * Whether scripts reach Redis as they are sent, as with other servers that speak this API. Redis
   * then refuses Upstash's flag. Default false: the flag is taken off.
   */
  readonly keepsScriptFlags?: boolean
  /** The address to listen on. Default `127.0.0.1`. */
  readonly host?: string
  /**
   * Gets the body of each authenticated request before its commands run; false closes the connection without a
   * response. Default: each is accepted.
   */
  readonly accepts?: (body: Buffer) => boolean
}

/** A running server. */
export interface UpstashRest {
  /** `http://host:port`, for `UPSTASH_REDIS_REST_URL`. */
  readonly url: string
  readonly token: string
  /** Ends open requests and streams, and stops a Redis that the server started itself. */
  close(): Promise<void>
}

/**
 * Starts the server. Throws if the port is in use, the token is empty, or Redis does not respond.
 */
export async function startUpstashRest(options: UpstashRestOptions): Promise<UpstashRest> {
  const { port, token, host = '127.0.0.1' } = options
  if (token === '') throw new TypeError('startUpstashRest: the token must not be empty')
  const owned = options.redis === undefined ? await startRedis() : undefined
  const redis = options.redis ?? (owned as RedisHandle)
  try {
    const connection = await connect(redis.url)
    const services: Services = {
      connection: options.keepsScriptFlags === true ? connection : withScriptFlags(connection),
      requireToken: requireToken(token),
      nextSyncToken: syncTokens(),
      accepts: options.accepts ?? (() => true),
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

/**
 * Creates a generator of sync tokens. There is only one copy of the data, so the token must only
 * change.
 */
function syncTokens(): () => string {
  const start = randomUUID()
  let count = 0
  return () => `${start}:${(count++).toString(36)}`
}
