/** What operators and isolates write and read on a cluster: each party has it in the lane that needs it. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { createAdmission } from '../../../../src/access/admission/admission.ts'
import { createLaneAdmissionStore } from '../../../../src/access/admission/redis/lane-store.ts'
import {
  createLimitControls,
  createOverrideList,
} from '../../../../src/access/admission/redis/limit-overrides.ts'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
  type RelationCheck,
} from '../../../../src/access/relations/redis/check.ts'
import { createRelationTuples } from '../../../../src/access/relations/redis/tuples.ts'
import { createRevocations } from '../../../../src/access/revocation/redis/revocations.ts'
import { NOTHING_REVOCABLE } from '../../../../src/access/revocation/revocation.ts'
import { createReferenceStore } from '../../../../src/access/tokens/redis/references.ts'
import { createReferences } from '../../../../src/access/tokens/references.ts'
import { Unavailable } from '../../../../src/errors.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { laneOf } from '../../../../src/redis/lanes.ts'
import { withLanes } from '../../../harness/lanes.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { overResp } from '../../../harness/redis-protocols.ts'
import { ADDRESS, GATEWAY, limitOf, nowSeconds, principal, recordOf, stored } from '../callers.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
beforeEach(() => redis.direct.flushall())
afterAll(() => redis.close())

const lanes = () => withLanes(overResp(redis), 64)

/** Creates an isolate. Returns a function that sends a request, and returns its denial. */
function isolate(maxStalenessMs = 0) {
  let calls = 0
  const store = createLaneAdmissionStore(lanes())
  const counted = {
    ...store,
    consult: (query: Parameters<typeof store.consult>[0]) => {
      calls += 1
      return store.consult(query)
    },
  }
  const references = createReferences({ audience: GATEWAY })
  const admission = createAdmission({ store: counted, references, now: Date.now, maxStalenessMs })
  return {
    admission,
    calls: () => calls,
    async send(caller: ReturnType<typeof principal> | null, limits = [limitOf()]) {
      const verdict = await admission.admit({ principal: caller, address: ADDRESS, limits })
      await verdict.renewal?.()
      return verdict.denial?.code
    },
  }
}

test('an override, its end and a reset of a window apply in the lane of its party, whatever that is', async () => {
  const cluster = lanes()
  const { send } = isolate()
  const shared = { ...limitOf({ limit: 1 }), owner: 'acme-tenant' }
  const overrides = createOverrideList(cluster, Date.now)
  const order = { requests: 3, windows: [shared.key], limit: 'test', createdBy: 'olga' }
  const record = await overrides.create({ ...order, value: 'acme-tenant' })
  const who = principal()
  expect(await Promise.all([send(who, [shared]), send(who, [shared])])).toEqual([
    undefined,
    undefined,
  ])
  expect(await overrides.remove(record.id)).toBe(true)
  expect(await isolate().send(who, [shared])).toBe('rate_limited')
  await createLimitControls(cluster).reset({ key: shared.key, windowSeconds: 86_400 })
  expect(await isolate().send(who, [shared])).toBeUndefined()
})

test('a relation is written, read and checked in the lane of its tenant, in the round of the admission', async () => {
  const cluster = lanes()
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
  const check = createRelationCheck(model)
  const tuple = { object: 'doc:1', relation: 'reader', subject: 'user:anne' }
  const tuples = createRelationTuples(cluster, ['doc', 'user'])
  await tuples.write('acme', { writes: [tuple], deletes: [] })
  const query = { ...tuple, tenant: 'acme', contextualTuples: [] }
  const allowed = { decision: { outcome: 'allowed' } }
  expect(await createRedisDecisionPoint(cluster, check).check(query)).toMatchObject(allowed)
  const facts = await createLaneAdmissionStore(cluster, check).consult({
    caller: 'anne',
    revocation: NOTHING_REVOCABLE,
    bans: [],
    limits: [],
    relation: query,
    nowMs: Date.now(),
  })
  expect(facts.relation).toMatchObject(allowed)
  const { prefix } = laneOf(cluster, 'acme').keys
  for (const name of await redis.direct.keys('*tuple*')) expect(name.startsWith(prefix)).toBe(true)
})

test('an isolate with a view of revocations admits without a call, until the view has a change of any lane', async () => {
  const bound = 60_000
  const own = isolate(bound)
  const who = principal()
  expect(await own.send(who, [])).toBeUndefined()
  expect(await own.send(who, [])).toBeUndefined()
  const before = own.calls()
  expect(await own.send(who, [])).toBeUndefined()
  expect(own.calls()).toBe(before)
  await createRevocations(lanes(), Date.now).revokeBefore({
    kind: 'tenant',
    issuer: who.issuer,
    value: who.tenant ?? '',
    atSeconds: nowSeconds(),
    ttlSeconds: 600,
  })
  // `recheck` reads the feed of all lanes now, without regard to the bound.
  const [denial] = await own.admission.recheck([{ principal: who, address: ADDRESS }])
  expect(denial?.code).toBe('token_revoked')
  expect(await own.send(who, [])).toBe('token_revoked')
})

test('a reference is admitted in the lane of its subject, and refused after a revocation of the subject', async () => {
  const cluster = lanes()
  const reference = await stored(createReferenceStore(cluster), recordOf({ subject: 'anne' }))
  const admit = () =>
    isolate().admission.admitReference({
      reference,
      proof: undefined,
      address: ADDRESS,
      limits: [],
    })
  expect(await admit()).toMatchObject({ denial: undefined, principal: { subject: 'anne' } })
  await createRevocations(cluster, Date.now).revokeBefore({
    kind: 'subject',
    issuer: recordOf().issuer,
    value: 'anne',
    atSeconds: nowSeconds() + 1,
    ttlSeconds: 600,
  })
  expect(await admit()).toMatchObject({ denial: { code: 'token_revoked', by: 'subject' } })
})

test('a defect of the relation check beside a lane that is away is no unhandled rejection', async () => {
  const away: RedisConnection = {
    ...lanes(),
    send: () => Promise.reject(new Unavailable('redis', 'unreachable')),
  }
  const check: RelationCheck = {
    command: () => Promise.reject(new TypeError('a defect')),
    answerOf: () => Promise.reject(new TypeError('a defect')),
    explanationOf: () => Promise.reject(new TypeError('a defect')),
  }
  const store = createLaneAdmissionStore(withLanes(away, 4), check)
  const unhandled: unknown[] = []
  const record = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', record)
  onTestFinished(() => void process.off('unhandledRejection', record))
  await expect(
    store.consult({
      ...{
        caller: ADDRESS,
        revocation: NOTHING_REVOCABLE,
        limits: [],
        nowMs: Date.now(),
      },
      bans: [{ by: 'address', key: `${away.keys.prefix}ban:x` }],
      relation: {
        ...{ tenant: 'acme', object: 'note:1', relation: 'viewer', subject: 'user:alice' },
        contextualTuples: [],
      },
    }),
  ).rejects.toThrow(Unavailable)
  await new Promise(setImmediate)
  expect(unhandled).toEqual([])
})
