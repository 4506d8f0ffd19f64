/** The Upstash REST endpoint that the gateway uses: one that was given, or a local one. */
import { type RedisHandle, startRedis } from '../redis.ts'
import { startUpstashRest } from '../upstash-rest/server.ts'
import type { Settings } from './settings.ts'

const PING_TIMEOUT_MS = 5_000

export interface RedisRest {
  readonly url: string
  readonly token: string
  /** What it is, in a few words. */
  readonly description: string
  close(): Promise<void>
}

/** Throws an `Error` of one line, without secrets, if Redis does not answer. */
export async function openRedisRest(settings: Settings, localToken: string): Promise<RedisRest> {
  if (settings.upstash) {
    const { url, token } = settings.upstash
    await ping(url, token)
    return { url, token, description: new URL(url).host, close: async () => {} }
  }
  const redis = await startRedis(settings.redisUrl === undefined ? {} : { url: settings.redisUrl })
  try {
    const rest = await startUpstashRest({ port: 0, token: localToken, redis })
    return {
      url: rest.url,
      token: rest.token,
      description: DESCRIPTIONS[redis.kind],
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
    throw new Error(`UPSTASH_REDIS_REST_URL: nobody answers on ${new URL(url).host}`)
  }
  if (status !== 200) {
    const hint = status === 401 ? ' (is UPSTASH_REDIS_REST_TOKEN right?)' : ''
    throw new Error(
      `UPSTASH_REDIS_REST_URL: ${new URL(url).host} answers PING with ${status}${hint}`,
    )
  }
}
