/** The settings of a master while it is used, with a clock of the test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { upstash } from '../../../src/features/upstash/index.ts'
import { portcullis } from '../../../src/hono/index.ts'
import { definePolicy } from '../../../src/index.ts'
import { check } from '../../../src/runtimes/node/index.ts'
import type { ClusterNode } from '../../../src/runtimes/node/redis/cluster/router.ts'
import {
  createClusterChecks,
  RENEWED_MS,
} from '../../../src/runtimes/node/redis/cluster/start-checks.ts'
import { createFencedServer } from '../../../src/runtimes/node/redis/fence/fenced-server.ts'
import { redis as connectRedis } from '../../../src/runtimes/node/redis/index.ts'
import { NEVER } from '../../harness/never.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.config('SET', 'cluster-require-full-coverage', 'no')
})
afterAll(() => redis.close())

/** Creates the checks of one master, which has proven itself. */
async function createWorld() {
  const server = { host: '127.0.0.1', port: Number(new URL(redis.redisUrl).port) }
  const { password, username } = new URL(redis.redisUrl)
  const target = {
    ...{ servers: [server], master: undefined, lanes: undefined, tls: false, database: 0 },
    ...{ username: username || undefined, password: password || undefined },
    sentinelLogin: { username: undefined, password: undefined },
  }
  const unlimited = Number.POSITIVE_INFINITY
  const fenced = createFencedServer({
    ...{ target, silenceMs: 5_000, fenceMs: unlimited },
    confirm: () => checks.require(node),
  })
  const node: ClusterNode = { ...fenced, server, address: '127.0.0.1:1' }
  const world = { nowMs: 0 }
  const checks = createClusterChecks(
    { masters: () => [node], ranges: () => [] },
    { fenceMs: unlimited, timeoutMs: 250, replicasAcked: 1, acceptsEviction: false },
    () => world.nowMs,
  )
  await node.proved()
  const findings = () => checks.findings().mistakes.map(({ message }) => message)
  return { world, node, checks, findings }
}

test('a master whose settings become unsafe is used no longer, until they are safe again', async () => {
  const { world, node, checks, findings } = await createWorld()
  const call = () => node.send([['EXISTS', 'any']], { isExpired: false })
  await redis.direct.config('SET', 'maxmemory-policy', 'allkeys-lru')
  world.nowMs += RENEWED_MS - 1
  checks.renew()
  expect(findings()).toEqual([])
  world.nowMs += 1
  checks.renew()
  await expect.poll(findings).toEqual([expect.stringContaining('an evicted revocation is lost')])
  await expect.poll(node.isBelieved).toBe(false)
  await expect(call(), NEVER).rejects.toThrow('settings that lose revocations')
  await redis.direct.config('SET', 'maxmemory-policy', 'noeviction')
  expect(await call()).toEqual([{ result: 0 }])
  expect(findings()).toEqual([])
  node.close()
})

test('a finding about a master that is used ends after its correction', async () => {
  await redis.direct.config('SET', 'cluster-require-full-coverage', 'yes')
  const { world, node, checks, findings } = await createWorld()
  expect(findings()).toEqual([expect.stringContaining('cluster-require-full-coverage yes')])
  await redis.direct.config('SET', 'cluster-require-full-coverage', 'no')
  world.nowMs += RENEWED_MS
  checks.renew()
  await expect.poll(findings).toEqual([])
  expect(node.isBelieved()).toBe(true)
  node.close()
})

test('a limit with upstash() is refused on a cluster, with what to do, and accepted on one server', async () => {
  const limit = { limit: 9, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } as const
  const policy = definePolicy({
    roles: {},
    limits: { many: { ...limit, engine: upstash() }, exact: limit },
    routes: [{ method: 'GET', path: '/open', anonymous: true, limits: ['many', 'exact'] }],
  })
  const env = { PUBLIC_URL: 'https://gateway.test', ORIGIN_URL: 'https://origin.test' }
  const checked = (REDIS_URL: string) => check({ policy, env: { ...env, REDIS_URL } })
  const refused = expect(checked('redis+cluster://127.0.0.1:1/?lanes=4')).rejects
  await refused.toThrow(/limits\.many\.engine: upstash\(\) .* remove `engine`/)
  await expect(checked(redis.redisUrl)).resolves.toBeUndefined()
  const guarded = (url: string) => () =>
    portcullis({
      issuers: [{ issuer: 'https://issuer.test', audience: 'https://app.test' }],
      redis: connectRedis(url),
      limits: { many: { ...limit, engine: upstash() }, exact: limit },
    })
  expect(guarded('redis+cluster://127.0.0.1:1/?lanes=4')).toThrow(
    /limits\.many\.engine: upstash\(\) .* remove `engine`/,
  )
  expect(guarded(redis.redisUrl)).not.toThrow()
})
