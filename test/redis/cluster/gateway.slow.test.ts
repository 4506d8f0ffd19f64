/** A gateway on a real cluster, and the contract of admission within one lane. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { counterName } from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createStreamQueue, createStreamReader } from '../../../src/audit/redis/stream.ts'
import { Unavailable } from '../../../src/errors.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { allLanes, type ClusterConnection, laneOf } from '../../../src/redis/lanes.ts'
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

/** The longest within the documented range, so that a stall of a process is not an outage: together less than the node timeout. */
const TIMEOUT_MS = 1_900
const FENCE_MS = 3_000
const PATIENT = { REDIS_TIMEOUT_MS: `${TIMEOUT_MS}`, REDIS_FENCE_MS: `${FENCE_MS}` }
const NODE_TIMEOUT = ['--cluster-node-timeout', '5000']

describe.skipIf(!hasRedisServer)('on a cluster', () => {
  let cluster: TestCluster
  let client: RespClient
  let lane: RedisConnection
  beforeAll(async () => {
    cluster = await startRedisCluster({ args: NODE_TIMEOUT })
    client = connectResp({ url: cluster.url, timeoutMs: TIMEOUT_MS, fenceMs: FENCE_MS })
    await client.check()
    const [, second] = allLanes(client.connect({ timeoutMs: TIMEOUT_MS }))
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

  /** Sends 20 requests of each of 20 subjects at once. Returns what was admitted, and what windows count then. */
  async function admit400(connection: ClusterConnection) {
    const refunds: Promise<boolean>[] = []
    const store = createLaneAdmissionStore(connection, undefined, (done) => refunds.push(done))
    const rule = { limit: 100, windowSeconds: 60, name: 'test', onUnavailable: 'deny' } as const
    const shared = { rule, key: 'shared', owner: 'acme' }
    let unanswered = 0
    const admitted = await Promise.all(
      Array.from({ length: 400 }, async (_, n) => {
        const caller = `subject-${n % 20}`
        const own = { rule: { ...rule, limit: 30 }, key: caller, owner: caller }
        const query = { caller, revocation: NOTHING_REVOCABLE, bans: [], nowMs: Date.now() }
        const { limits } = await store.consult({ ...query, limits: [own, shared] })
        unanswered += limits.filter((state) => state instanceof Unavailable).length
        return limits.every((state) => state && 'admitted' in state && state.admitted)
      }),
    )
    const done = await Promise.all(refunds)
    const taken = async (owner: string, key: string) => {
      const { keys, send } = laneOf(connection, owner)
      const [window] = await send([['GET', counterName(keys, key)]])
      return takenOf(String(window?.result ?? '0'))
    }
    const subjects = Array.from({ length: 20 }, (_, n) => taken(`subject-${n}`, `subject-${n}`))
    return {
      admitted: admitted.filter(Boolean).length,
      ofTenant: await taken('acme', 'shared'),
      ofSubjects: (await Promise.all(subjects)).reduce((sum, units) => sum + units, 0),
      unanswered,
      lost: done.filter((isFree) => !isFree).length,
    }
  }

  /** Returns the connection, with each third refund lost. */
  function losingRefunds(connection: ClusterConnection): ClusterConnection {
    let refunds = 0
    const lost = (lane: RedisConnection): RedisConnection => ({
      ...lane,
      async send(commands, options) {
        if (options?.once && options.over && ++refunds % 3 === 0)
          throw new Unavailable('redis', 'unreachable')
        return lane.send(commands, options)
      },
    })
    const { lanes } = connection
    const all = new Map(lanes.all.map((lane) => [lane, lost(lane)]))
    const of = (value: string) => all.get(lanes.of(value)) ?? lost(lanes.of(value))
    return { ...connection, lanes: { ...lanes, all: [...all.values()], of } }
  }

  test.each([
    ['only those whose refund is lost', losingRefunds],
    ['none, if no refund is lost', (connection: ClusterConnection) => connection],
  ])(
    '20 subjects admit no more than 100 of a limit of their tenant; units left behind: %s [S93]',
    async (_, over) => {
      await cluster.flush()
      const { lanes, ...control } = client.connect({ timeoutMs: TIMEOUT_MS })
      if (lanes === undefined) throw new Error('there are no lanes')
      const found = await admit400(over({ ...control, lanes }))
      const { admitted, ofTenant, ofSubjects, unanswered, lost } = found
      if (over === losingRefunds) expect(lost).toBeGreaterThan(0)
      expect(Math.max(admitted, ofTenant)).toBeLessThanOrEqual(100)
      expect(Math.min(ofTenant, ofSubjects)).toBeGreaterThanOrEqual(admitted)
      // A process that stalls for longer than the fence or the deadline loses replies and refunds. With none lost,
      // exactly 100 are admitted, and all windows count these alone.
      const uncertain = unanswered + lost
      const text = JSON.stringify(found)
      expect(ofTenant - admitted + (ofSubjects - admitted), text).toBeLessThanOrEqual(uncertain)
      expect(admitted, text).toBeGreaterThanOrEqual(100 - uncertain)
    },
  )

  test('the audit stream is in the control lane, and its readers find the events there', async () => {
    const redis = client.connect({ timeoutMs: TIMEOUT_MS })
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
        variables: { REDIS_URL: `${cluster.url}/?lanes=64`, ...PATIENT },
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

    // The last test of the cluster, which is not whole afterwards.
    test('answers the subjects of other lanes without the master of the control lane [R43]', async () => {
      const redis = client.connect({ timeoutMs: TIMEOUT_MS })
      const { lanes } = redis
      if (lanes === undefined) throw new Error('there are no lanes')
      const ownerOf = async ({ keys }: RedisConnection) =>
        cluster.ownerOf(Number(await cluster.masters[0]?.direct.cluster('KEYSLOT', keys.prefix)))
      const lost = await ownerOf(redis)
      const subjects = await Promise.all(
        Array.from({ length: 30 }, async (_, n) => {
          const sub = `subject-${n}`
          const token = await gateway.token({ claims: { sub, roles: ['reader'] } })
          const isLost = (await ownerOf(lanes.of(sub))) === lost
          return { headers: { authorization: `Bearer ${token}` }, isLost }
        }),
      )
      // Without a replica, no other master takes its place.
      if (lost === undefined) throw new Error('no master has the control lane')
      await cluster.replicas[cluster.masters.indexOf(lost)]?.kill()
      await lost.kill()
      gateway.requests.length = 0
      const statuses = await Promise.all(
        subjects.map(
          async ({ headers }) => (await fetch(`${gateway.url}/orders`, { headers })).status,
        ),
      )
      expect(statuses).toEqual(subjects.map(({ isLost }) => (isLost ? 503 : 200)))
      expect(new Set(statuses).size).toBe(2)
      expect(gateway.requests).toHaveLength(subjects.filter(({ isLost }) => !isLost).length)
    })
  })
})
