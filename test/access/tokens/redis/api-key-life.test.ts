import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApiKeys } from '../../../../src/access/tokens/redis/api-keys.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { createRedisRest } from '../../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'

const START_MS = 1_795_183_974_000
/** The clock tolerance of the gateway for its own tokens. */
const TOLERANCE_MS = 5_000

let redis: TestRedis
let rest: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis('auto')
  rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  await redis.direct.flushall()
})
afterAll(() => redis.close())

test.each([
  ['at its expiry', 60_000],
  ['in its last moment', 60_000 + TOLERANCE_MS - 1],
])('every key in Redis has a TTL after an API key is replaced %s [S34]', async (_, laterMs) => {
  let nowMs = START_MS
  const keys = createApiKeys({ redis: rest, publicUrl: 'https://gateway.test', now: () => nowMs })
  const described = { name: 'robot', subject: 'robot', expiresInSeconds: 60 }
  const { key } = await keys.create(described, 'olga')
  nowMs += laterMs
  const replaced = await keys.rotate(key.id)
  expect(replaced?.key.expiresAtSeconds).toBe(key.expiresAtSeconds)
  for (const name of [`pc:api-key:${key.id}`, `pc:reference:${replaced?.key.hash}`]) {
    expect(await redis.direct.exists(name)).toBe(1)
    expect(await redis.direct.ttl(name)).toBeGreaterThanOrEqual(0)
  }
})
