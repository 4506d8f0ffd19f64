/** The readiness check of Redis while a real Redis answers and refuses writes, over REST and over RESP. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { composeServices, type GatewayEnv } from '../../src/gateway/compose-services.ts'
import { WORKERS } from '../../src/gateway/runtime.ts'
import { definePolicy } from '../../src/index.ts'
import { nodeRuntime } from '../../src/runtimes/node/runtime.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'

const policy = definePolicy({
  roles: {},
  limits: {},
  routes: [{ method: 'GET', path: '/', anonymous: true }],
})

describe.each(['REST', 'RESP'] as const)('over %s [R18]', (over) => {
  let redis: TestRedis
  let check: () => Promise<unknown>
  let close = async () => {}

  beforeAll(async () => {
    redis = await startTestRedis()
    const variables = {
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: 'http://127.0.0.1:1',
      ISSUERS: '[]',
      REDIS_TIMEOUT_MS: '5000',
      ...(over === 'RESP' ? { REDIS_URL: redis.redisUrl } : redisVars(redis)),
    }
    const runtime = over === 'RESP' ? nodeRuntime(variables) : undefined
    if (runtime !== undefined) close = runtime.close
    const services = composeServices(variables as unknown as GatewayEnv, policy, runtime ?? WORKERS)
    const found = services.checks.find(({ name }) => name === 'redis')
    check = async () => found?.check(() => {})
  })
  afterAll(async () => {
    await close()
    await redis?.close()
  })

  test('the check writes one key, which expires', async () => {
    await check()
    await check()
    expect(await redis.direct.keys('*')).toEqual(['pc:readiness'])
    expect(await redis.direct.ttl('pc:readiness')).toBeGreaterThan(0)
  })

  test.each([
    ['is out of memory', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
    ['is a demoted master', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    [
      'has too few replicas',
      ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
      ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
    ],
    [
      'does not let the user write',
      ['ACL', 'SETUSER', 'default', '-@write'],
      ['ACL', 'SETUSER', 'default', '+@all'],
    ],
  ])('the check fails while Redis %s, and passes afterwards', async (_, begin, end) => {
    if (redis.kind === 'embedded') return
    await redis.direct.call(...(begin as [string, ...string[]]))
    try {
      expect(await redis.direct.ping()).toBe('PONG')
      await expect(check()).rejects.toMatchObject({ name: 'Unavailable', fault: 'refused' })
    } finally {
      await redis.direct.call(...(end as [string, ...string[]]))
    }
    await check()
  })
})
