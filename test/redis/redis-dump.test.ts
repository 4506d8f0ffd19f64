import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import { complaintsAbout } from '../harness/redis-dump.ts'

let server: RedisHandle
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})
beforeEach(() => redis.flushall())
afterAll(async () => {
  redis?.disconnect()
  await server?.close()
})

test('the scan of Redis finds each kind of credential, in keys and in values [S40]', async () => {
  const refreshToken = `${'a'.repeat(22)}.${'b'.repeat(43)}`
  await redis.set(`pc:reference:pk_${'A'.repeat(49)}`, '{}', 'EX', 60)
  await redis.hset('pc:refresh:x', { current: refreshToken })
  await redis.expire('pc:refresh:x', 60)
  await redis.set('pc:client:x', JSON.stringify({ secret: `pcs_${'s'.repeat(43)}` }))
  await redis.set('pc:revoked:x', 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln', 'EX', 60)
  const complaints = await complaintsAbout(redis)
  expect(complaints.toSorted()).toEqual([
    'pc:client:x holds a client secret',
    `pc:reference:pk_${'A'.repeat(49)} holds an API key`,
    'pc:refresh:x holds a refresh token',
    'pc:revoked:x holds a JWT',
  ])
})

test('the scan of Redis finds a key without a TTL that the document does not list [S34]', async () => {
  await redis.set('pc:revoked:x', '1')
  await redis.set('pc:client:x', '{}')
  await redis.zadd('pc:clients', 0, 'x')
  expect(await complaintsAbout(redis)).toEqual(['pc:revoked:x has no TTL'])
})

test('the scan of an empty Redis fails, because it proves nothing', async () => {
  expect(await complaintsAbout(redis)).toEqual(['Redis is empty, so the check proves nothing'])
})
