/** The protocols over which a gateway reaches Redis, for suites that every one of them must pass. */
import type { RedisConnection } from '../../src/redis/connection.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { createRedisByFetch } from '../../src/redis/rest-by-fetch.ts'
import type { TestRedis } from './redis.ts'

/** Long, so that a stall of the machine does not count as an outage. */
const timeoutMs = 20_000

export const overRest = ({ url, token }: TestRedis): RedisConnection =>
  createRedisRest({ url, token, timeoutMs })
export const overFetch = ({ url, token }: TestRedis): RedisConnection =>
  createRedisByFetch({ url, token, timeoutMs })
export const overResp = ({ resp }: TestRedis): RedisConnection => resp.connect({ timeoutMs })

/** Each kind of Redis once, and each protocol once: for suites that take long. */
export const REDIS_PROTOCOLS = [
  { name: 'Redis over RESP', prefer: 'auto', connect: overResp },
  { name: 'embedded Redis over REST', prefer: 'embedded', connect: overRest },
] as const

/** All kinds of Redis over all protocols. */
export const ALL_REDIS_PROTOCOLS = [
  ...REDIS_PROTOCOLS,
  { name: 'Redis over REST', prefer: 'auto', connect: overRest },
  { name: 'embedded Redis over RESP', prefer: 'embedded', connect: overResp },
] as const

/** All of them, and the client of guards: for suites of what a guard stores. */
export const GUARD_REDIS_PROTOCOLS = [
  ...ALL_REDIS_PROTOCOLS,
  { name: 'Redis over fetch', prefer: 'auto', connect: overFetch },
] as const
