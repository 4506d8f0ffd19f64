/** A gateway on a real cluster, and the contract of admission within one lane. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { counterName } from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createStreamQueue, createStreamReader } from '../../../src/audit/redis/stream.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { allLanes, laneOf } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { admissionContract } from '../../access/admission/admission-contract.ts'
import { takenOf } from '../../access/admission/callers.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'
import { startRedisCluster, type TestCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: { few: { limit: 3, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['few'] }],
})

describe.skipIf(!hasRedisServer)('on a cluster', () => {
  let cluster: TestCluster
  let client: RespClient
  let lane: RedisConnection
  beforeAll(async () => {
    cluster = await startRedisCluster()
    client = connectResp({ url: cluster.url, timeoutMs: 1_000 })
    await client.check()
    const [, second] = allLanes(client.connect({ timeoutMs: 1_000 }))
    if (second === undefined) throw new Error('there are no lanes')
    lane = second
  })
  afterAll(async () => {
    client.close()
    await cluster.close()
  })

  describe('a lane', () => {
    admissionContract(async () => {
      await cluster.flush()
      return {
        store: createRedisAdmissionStore(lane),
        revocations: createRevocations(lane, Date.now),
        references: createReferenceStore(lane),
        ban: async (key, untilSeconds) => void (await lane.send([['SET', key, untilSeconds]])),
      }
    })
  })

  test('20 subjects admit exactly 100 of a limit of their tenant, and no unit is lost [S93]', async () => {
    await cluster.flush()
    const connection = client.connect({ timeoutMs: 1_000 })
    const refunds: Promise<void>[] = []
    const store = createLaneAdmissionStore(connection, undefined, (done) => refunds.push(done))
    const rule = { limit: 100, windowSeconds: 60, name: 'test', onUnavailable: 'deny' } as const
    const shared = { rule, key: 'shared', owner: 'acme' }
    const admitted = await Promise.all(
      Array.from({ length: 400 }, async (_, n) => {
        const caller = `subject-${n % 20}`
        const own = { rule: { ...rule, limit: 30 }, key: caller, owner: caller }
        const query = { caller, revocation: NOTHING_REVOCABLE, bans: [], nowMs: Date.now() }
        const { limits } = await store.consult({ ...query, limits: [own, shared] })
        return limits.every((state) => state && 'admitted' in state && state.admitted)
      }),
    )
    await Promise.all(refunds)
    expect(admitted.filter(Boolean).length).toBe(100)
    const lane = laneOf(connection, 'acme')
    const [reply] = await lane.send([['GET', counterName(lane.keys, 'shared')]])
    expect(takenOf(String(reply?.result))).toBe(100)
    // Every other lane has returned what this one refused.
    const taken = Array.from({ length: 20 }, async (_, n) => {
      const { keys, send } = laneOf(connection, `subject-${n}`)
      const [window] = await send([['GET', counterName(keys, `subject-${n}`)]])
      return takenOf(String(window?.result ?? '0'))
    })
    expect((await Promise.all(taken)).reduce((sum, units) => sum + units, 0)).toBe(100)
  })

  test('the audit stream is in the control lane, and its readers find the events there', async () => {
    const redis = client.connect({ timeoutMs: 1_000 })
    const reader = createStreamReader(redis, 'reader')
    await createStreamQueue(redis).sendBatch([{ body: '{"id":"1"}', contentType: 'text' }])
    expect(await reader.read(10)).toEqual([expect.objectContaining({ body: '{"id":"1"}' })])
  })

  describe('a gateway', () => {
    let gateway: TestGateway
    beforeAll(async () => {
      gateway = await startGateway({
        runtime: 'Node',
        redis: 'resp',
        policy,
        variables: { REDIS_URL: `${cluster.url}/?lanes=64`, REDIS_TIMEOUT_MS: '1000' },
      })
    })
    afterAll(() => gateway.close())

    test('serves, counts each subject exactly, and stores nothing outside of the lanes', async () => {
      const statuses = async (sub: string) => {
        const headers = {
          authorization: `Bearer ${await gateway.token({ claims: { sub, roles: ['reader'] } })}`,
        }
        const responses = await Promise.all(
          Array.from({ length: 8 }, () => fetch(`${gateway.url}/orders`, { headers })),
        )
        return responses.map(({ status }) => status).sort()
      }
      const limited = [200, 200, 200, 429, 429, 429, 429, 429]
      expect(await statuses('anne')).toEqual(limited)
      expect(await statuses('bob')).toEqual(limited)
      expect(gateway.requests).toHaveLength(6)
      const keys = await Promise.all(cluster.masters.map(({ direct }) => direct.keys('*')))
      expect(keys.flat().length).toBeGreaterThan(2)
      expect(keys.flat().filter((key) => !/^pc:\{\w+\}:/.test(key))).toEqual([])
    })
  })
})
