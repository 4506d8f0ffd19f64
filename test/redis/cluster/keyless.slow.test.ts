/** Queries that need no key in the lane of their caller: a node cannot be found for such a call. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import { readOnlyStore } from '../../../src/access/admission/read-only-store.ts'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import type { AdmissionQuery } from '../../../src/access/admission/store.ts'
import { compileModel } from '../../../src/access/relations/compile-model.ts'
import { createRelationCheck } from '../../../src/access/relations/redis/check.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import type { ClusterConnection } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { limitOf } from '../../access/admission/callers.ts'
import { apartFrom } from '../../access/admission/redis/lanes.ts'
import { startRedisCluster, type TestCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const TENANT = 'acme'
const model = compileModel({
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'doc',
      relations: { reader: { this: {} } },
      metadata: { relations: { reader: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
})
const relation: AdmissionQuery['relation'] = {
  tenant: TENANT,
  contextualTuples: [],
  ...{ object: 'doc:1', relation: 'reader', subject: 'user:anne' },
}

/** No master stops in these tests, but a slow machine may. */
const TIMEOUT_MS = 20_000

describe.skipIf(!hasRedisServer)('a query whose caller needs no key in its lane', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  const sides = new Map<number, { connection: ClusterConnection; calls: () => number }>()
  beforeAll(async () => {
    const args = ['--cluster-node-timeout', String(3 * TIMEOUT_MS)]
    cluster = await startRedisCluster({ replicas: 0, args })
    for (const count of [1, 4]) {
      const url = `${cluster.url}/?lanes=${count}`
      const client = connectResp({
        url,
        keyPrefix: `pc${count}:`,
        timeoutMs: TIMEOUT_MS,
        fenceMs: TIMEOUT_MS,
        replicasAcked: 0,
      })
      clients.push(client)
      let calls = 0
      const onCall = () => {
        calls += 1
      }
      const { lanes, ...rest } = client.connect({ timeoutMs: TIMEOUT_MS, onCall })
      if (lanes === undefined) throw new Error('there are no lanes')
      sides.set(count, { connection: { ...rest, lanes }, calls: () => calls })
    }
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    await cluster.close()
  })

  function sideWith(lanes: number) {
    const side = sides.get(lanes)
    if (side === undefined) throw new Error(`no connection with ${lanes} lanes`)
    const { connection } = side
    // One lane is the lane of everyone.
    const other = lanes === 1 ? TENANT : apartFrom(connection, ['anne', '192.0.2.1'], 'other')
    const store = createLaneAdmissionStore(connection, createRelationCheck(model))
    return { ...side, other, store }
  }

  const windowOf = (owner: string, rule: Partial<LimitRequest['rule']> = {}): LimitRequest => ({
    ...limitOf(rule),
    owner,
  })

  const contents = [false, true].flatMap((bans) =>
    (['none', 'own', 'other', 'both'] as const).flatMap((limits) =>
      [false, true].flatMap((checks) =>
        [false, true].map((reads) => ({ bans, limits, checks, reads })),
      ),
    ),
  )

  test.each(
    [1, 4].flatMap((lanes) =>
      ['anne', '192.0.2.1', undefined].map((caller) => ({ lanes, caller })),
    ),
  )('is answered by the lanes that have keys of it: $lanes lanes, $caller', async (asked) => {
    const { connection, calls, other, store } = sideWith(asked.lanes)
    const { caller } = asked
    const own = caller ?? ''
    const common = { ...(caller !== undefined && { caller }), revocation: NOTHING_REVOCABLE }
    // From then on, the masters have cached the scripts.
    const everything = { bans: [], limits: [windowOf(own), windowOf(other)], nowMs: Date.now() }
    await store.consult({ ...common, ...everything, relation })
    for (const each of contents) {
      const limits = [
        ...(each.limits === 'own' || each.limits === 'both' ? [windowOf(own)] : []),
        ...(each.limits === 'other' || each.limits === 'both' ? [windowOf(other)] : []),
      ]
      const ban = { by: 'subject', key: `${connection.keys.prefix}ban:subject:anne` } as const
      const query: AdmissionQuery = {
        ...common,
        bans: each.bans ? [ban] : [],
        ...{ limits, relation: each.checks ? relation : undefined, nowMs: Date.now() },
      }
      const before = calls()
      const facts = await (each.reads ? readOnlyStore(store) : store).consult(query)
      const named = JSON.stringify(each)
      expect(facts.limits, named).toMatchObject(limits.map(() => ({ admitted: true })))
      expect(facts.tokenRevoked || facts.proofUsed, named).toBe(false)
      expect(facts.bannedUntilSeconds.filter(Boolean), named).toEqual([])
      if (each.checks) expect(facts.relation).toMatchObject({ decision: { outcome: 'denied' } })
      const needed = new Set(limits.map(({ owner = own }) => connection.lanes.of(owner)))
      if (each.bans) needed.add(connection.lanes.of(own))
      const wanted = needed.size + Number(each.checks)
      expect(calls() - before, named).toBe(wanted)
    }
  })

  test.each([1, 4])('counts a limit of another engine, over %i lanes', async (lanes) => {
    const { other, store } = sideWith(lanes)
    const rule = { limit: 2, windowSeconds: 86_400, engine: upstash() } as const
    const window = windowOf(other, rule)
    const query = { caller: 'anne', revocation: NOTHING_REVOCABLE, bans: [], nowMs: Date.now() }
    const admitted: unknown[] = []
    for (let n = 0; n < 3; n++) {
      const { limits } = await store.consult({ ...query, limits: [window] })
      admitted.push(limits[0] && 'admitted' in limits[0] && limits[0].admitted)
    }
    expect(admitted).toEqual([true, true, false])
  })
})
