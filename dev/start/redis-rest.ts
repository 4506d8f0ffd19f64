/** The Upstash REST endpoint of the gateway: a given one, or a local one. */
import { type RedisHandle, startRedis } from '../redis.ts'
import { startUpstashRest } from '../upstash-rest/server.ts'
import type { Settings } from './settings.ts'

const PING_TIMEOUT_MS = 5_000

export interface RedisConnection {
  readonly url: string
  readonly token: string
  /** The Redis behind the endpoint, or the URL of Sentinels or a cluster. Undefined with Upstash. */
  readonly redisUrl: string | undefined
  /** A short description. */
  readonly description: string
  /**
   * Resolves with the reason if a Redis that was started for it ends before it is closed. Otherwise
   * never settles.
   */
  readonly died: Promise<string>
  close(): Promise<void>
}

/**
 * Opens the endpoint. Throws an `Error` of one line, without secrets, if Redis does not respond.
 */
export async function openRedisRest(
  settings: Settings,
  localToken: string,
): Promise<RedisConnection> {
  const { redisUrl } = settings
  if (settings.onNode && redisUrl !== undefined && FOUND_BY_GATEWAY.test(redisUrl))
    // The gateway itself finds and checks its servers. The REST endpoint is of no use to it.
    return { ...NO_REST, token: localToken, redisUrl, description: DESCRIPTIONS.external }
  if (settings.upstash) {
    const { url, token } = settings.upstash
    await ping(url, token)
    const description = new URL(url).host
    return { ...NO_REST, url, token, redisUrl: undefined, description }
  }
  return await startRedisRest({ redisUrl, port: 0, token: localToken })
}

/** Sentinels and clusters, which only a gateway on Node can use. */
const FOUND_BY_GATEWAY = /^rediss?\+(?:sentinel|cluster):/

/** What is not started here. The URL is never used. */
const NO_REST = {
  url: 'http://127.0.0.1',
  died: new Promise<never>(() => {}),
  close: async () => {},
}

export interface RedisRestOptions {
  /** A running Redis. Default: one that is started. */
  readonly redisUrl: string | undefined
  /** 0 selects a free port. */
  readonly port: number
  /** The token that callers must present. Not empty. */
  readonly token: string
}

/** Starts a local endpoint. Throws an `Error` of one line if Redis or the port is not available. */
export async function startRedisRest(options: RedisRestOptions): Promise<RedisConnection> {
  const { redisUrl, port, token } = options
  const redis = await openRedis(redisUrl)
  try {
    const rest = await startUpstashRest({ port, token, redis })
    return {
      url: rest.url,
      token: rest.token,
      redisUrl: redis.url,
      description: DESCRIPTIONS[redis.kind],
      died: redis.died,
      async close() {
        await rest.close()
        await redis.close()
      },
    }
  } catch (error) {
    await redis.close()
    throw error
  }
}

async function openRedis(url: string | undefined): Promise<RedisHandle> {
  if (url === undefined) return await startRedis()
  try {
    return await startRedis({ url })
  } catch (error) {
    throw new Error(`REDIS_URL: ${(error as Error).message}`)
  }
}

const DESCRIPTIONS: Readonly<Record<RedisHandle['kind'], string>> = {
  external: 'the one at REDIS_URL',
  server: 'redis-server from the PATH',
  embedded: 'embedded',
}

async function ping(url: string, token: string): Promise<void> {
  let status: number
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: '["PING"]',
      signal: AbortSignal.timeout(PING_TIMEOUT_MS),
    })
    await response.body?.cancel()
    status = response.status
  } catch {
    throw new Error(`UPSTASH_REDIS_REST_URL: no response from ${new URL(url).host}`)
  }
  if (status !== 200) {
    const hint = status === 401 ? ' (is UPSTASH_REDIS_REST_TOKEN right?)' : ''
    throw new Error(
      `UPSTASH_REDIS_REST_URL: ${new URL(url).host} responds to PING with ${status}${hint}`,
    )
  }
}
