/** API keys on a cluster: the control lane has their records, and the lane of the subject copies of them. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createAdmission } from '../../../../src/access/admission/admission.ts'
import { readOnlyStore } from '../../../../src/access/admission/read-only-store.ts'
import { createLaneAdmissionStore } from '../../../../src/access/admission/redis/lane-store.ts'
import type { AdmissionStore } from '../../../../src/access/admission/store.ts'
import { withBroadcast } from '../../../../src/access/revocation/redis/broadcast.ts'
import { createApiKeys } from '../../../../src/access/tokens/redis/api-keys.ts'
import {
  credentialHash,
  type Reference,
  storedReference,
} from '../../../../src/access/tokens/reference.ts'
import { parseStoredReference } from '../../../../src/access/tokens/reference-record.ts'
import { createReferences } from '../../../../src/access/tokens/references.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { replicationKeys } from '../../../../src/redis/keys.ts'
import { type ClusterConnection, laneOf } from '../../../../src/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { overResp } from '../../../harness/redis-protocols.ts'
import { ADDRESS, GATEWAY } from '../../admission/callers.ts'
import { apartFrom, type Call, lanesOver } from '../../admission/redis/lanes.ts'

const SUBJECT = 'billing'
let redis: TestRedis
let server: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis()
  server = overResp(redis)
})
beforeEach(async () => {
  await redis.direct.flushall()
})
afterAll(() => redis.close())

/** Creates 64 lanes that count calls by the prefix of their lane. Calls for which `fails` returns true fail. */
function cluster({ control = false } = {}) {
  const calls: string[] = []
  const state = { fails: (_prefix: string) => false }
  const lanes = withBroadcast(
    lanesOver(
      server,
      64,
      ({ keys }, pass) => {
        calls.push(keys.prefix)
        return state.fails(keys.prefix) ? Promise.resolve([{ error: 'ERR broken' }]) : pass()
      },
      control,
    ),
  )
  const apiKeys = createApiKeys({ redis: lanes, publicUrl: GATEWAY, now: Date.now })
  return { lanes, calls, state, apiKeys }
}

async function referenceOf(secret: string): Promise<Reference> {
  return { kind: 'api_key', text: secret, hash: await credentialHash(secret) }
}

/** Sends a request with a key that the isolate has not cached. Returns how it is refused. */
async function admit(
  lanes: ClusterConnection,
  secret: string,
  through = (store: AdmissionStore) => store,
) {
  const admission = createAdmission({
    store: through(createLaneAdmissionStore(lanes)),
    references: createReferences({ audience: GATEWAY }),
    now: Date.now,
  })
  const request = { proof: undefined, address: ADDRESS, limits: [] }
  const verdict = await admission.admitReference({
    ...request,
    reference: await referenceOf(secret),
  })
  return verdict.denial && ('check' in verdict.denial ? verdict.denial.check : verdict.denial.code)
}

const described = { name: 'key', subject: SUBJECT }
const create = (keys: ReturnType<typeof createApiKeys>) => keys.create(described, 'olga')

/** Returns the record that the lane of the subject has, and that of the control lane. */
async function recordsOf(lanes: RedisConnection, secret: string) {
  const name = `reference:${await credentialHash(secret)}`
  const read = async (prefix: string) => ({
    text: await redis.direct.get(prefix + name),
    life: await redis.direct.ttl(prefix + name),
  })
  return {
    lane: await read(laneOf(lanes, SUBJECT).keys.prefix),
    control: await read(lanes.keys.prefix),
  }
}

test('a key is drawn for the lane of its subject, and admitted with one call there', async () => {
  const { lanes, calls, apiKeys } = cluster()
  const { secret } = await create(apiKeys)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  expect(laneOf(lanes, (await referenceOf(secret)).hash).keys.prefix).toBe(prefix)
  await admit(lanes, secret)
  calls.length = 0
  expect(await admit(lanes, secret)).toBeUndefined()
  expect(calls).toEqual([prefix])
})

test('the last use of a key is found in the lane of its subject, by its id and in the list', async () => {
  const { lanes, apiKeys } = cluster()
  const { key, secret } = await create(apiKeys)
  expect(await apiKeys.find(key.id)).toMatchObject({ lastUsedAtSeconds: null })
  await admit(lanes, secret)
  const used = { lastUsedAtSeconds: expect.any(Number) }
  expect(await apiKeys.find(key.id)).toMatchObject(used)
  expect((await apiKeys.list({ limit: 10 })).items).toMatchObject([used])
})

test('a use that an earlier version noted in the control lane is found', async () => {
  const { lanes, apiKeys } = cluster()
  const { key } = await create(apiKeys)
  await redis.direct.set(`${lanes.keys.prefix}api-key-use:${key.id}`, '1800000000')
  expect(await apiKeys.find(key.id)).toMatchObject({ lastUsedAtSeconds: 1800000000 })
})

test('every change of a key is in force in its lane when the call returns', async () => {
  const { lanes, apiKeys } = cluster()
  const { key, secret } = await create(apiKeys)
  async function expectSame(text: string) {
    const { lane, control } = await recordsOf(lanes, text)
    expect(lane.text).not.toBeNull()
    expect(lane.text).toBe(control.text)
    // A copy is only as old as revocations last longer than it.
    expect(lane.life).toBeGreaterThan(0)
    expect(lane.life).toBeLessThanOrEqual(3_600)
  }
  await expectSame(secret)
  await apiKeys.update(key.id, { expiresInSeconds: 4_000 })
  await expectSame(secret)
  const rotated = await apiKeys.rotate(key.id, { graceSeconds: 300 })
  await expectSame(secret)
  await expectSame(rotated?.secret ?? '')
  expect(await admit(lanes, rotated?.secret ?? '')).toBeUndefined()
  await apiKeys.end(key.id)
  for (const text of [secret, rotated?.secret ?? '']) {
    await expectSame(text)
    expect(await admit(lanes, text)).toBe('token_revoked')
  }
})

test('a copy that is gone is read from the control lane, and made again', async () => {
  const { lanes, calls, apiKeys } = cluster()
  const { secret } = await create(apiKeys)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  await redis.direct.del(`${prefix}reference:${await credentialHash(secret)}`)
  expect(await admit(lanes, secret)).toBeUndefined()
  await expect.poll(async () => (await recordsOf(lanes, secret)).lane.text).not.toBeNull()
  await expect.poll(() => redis.direct.zcard(`${lanes.keys.prefix}pending-facts`)).toBe(0)
  calls.length = 0
  expect(await admit(lanes, secret)).toBeUndefined()
  expect(calls).toEqual([prefix])
})

test('a copy for the next use has no mark of a change and waits for no replica', async () => {
  const { lanes, apiKeys } = cluster()
  const { secret } = await create(apiKeys)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  await redis.direct.del(`${prefix}reference:${await credentialHash(secret)}`)
  const sent: Call[] = []
  const recording = lanesOver(server, 64, (call, pass) => {
    sent.push(call)
    return pass()
  })
  const acknowledging = withBroadcast({ ...recording, replicasAcked: 1 })
  expect(await admit(acknowledging, secret)).toBeUndefined()
  await expect.poll(async () => (await recordsOf(lanes, secret)).lane.text).not.toBeNull()
  expect(sent.filter(({ options }) => options?.acknowledgedBy !== undefined)).toEqual([])
  const { pendingFacts } = replicationKeys(lanes.keys)
  const names = sent.flatMap(({ commands }) => commands.flat())
  expect(names).not.toContain(pendingFacts)
})

test('a key that ends while its lane does not answer is refused there after another gateway completes it', async () => {
  const { lanes, state, apiKeys } = cluster()
  const { key, secret } = await create(apiKeys)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  state.fails = (lane) => lane === prefix
  await expect(apiKeys.end(key.id)).rejects.toThrow()
  await expect(admit(lanes, secret)).rejects.toThrow()
  state.fails = () => false
  // The lane still has what it had. Facts are abandoned 2 s after their mark.
  const marks = await redis.direct.zrange(`${lanes.keys.prefix}pending-facts`, 0, -1)
  expect(marks.length).toBeGreaterThan(1)
  for (const mark of marks) await redis.direct.zadd(`${lanes.keys.prefix}pending-facts`, 1, mark)
  await lanes.broadcast.complete(Date.now)
  expect(await admit(lanes, secret)).toBe('token_revoked')
})

test('a key of another lane, of an earlier version or imported, is admitted, and refused after its end', async () => {
  const earlier = cluster({ control: true })
  const { lanes, apiKeys } = cluster()
  let issued = await create(earlier.apiKeys)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  while (laneOf(lanes, await credentialHash(issued.secret)).keys.prefix === prefix)
    issued = await create(earlier.apiKeys)
  expect(await admit(lanes, issued.secret)).toBeUndefined()
  await apiKeys.end(issued.key.id)
  expect(await admit(lanes, issued.secret)).toBe('token_revoked')
})

test('gateways that keep credentials in the control lane leave no copy of before their change', async () => {
  const { lanes, apiKeys } = cluster()
  const { key, secret } = await create(apiKeys)
  expect((await recordsOf(lanes, secret)).lane.text).not.toBeNull()
  const control = cluster({ control: true })
  await control.apiKeys.rotate(key.id, { graceSeconds: 300 })
  expect((await recordsOf(lanes, secret)).lane.text).toBeNull()
  expect(await admit(lanes, secret)).toBeUndefined()
})

test('a repeated end of a key answers only after its lane has the end', async () => {
  const { lanes, state, apiKeys } = cluster()
  const { key, secret } = await create(apiKeys)
  const rotated = await apiKeys.rotate(key.id, { graceSeconds: 300 })
  const { prefix } = laneOf(lanes, SUBJECT).keys
  state.fails = (lane) => lane === prefix
  await expect(apiKeys.end(key.id)).rejects.toThrow()
  await expect(apiKeys.end(key.id)).rejects.toThrow()
  state.fails = () => false
  expect(await apiKeys.end(key.id)).toBe(true)
  for (const text of [secret, rotated?.secret ?? ''])
    expect(await admit(lanes, text)).toBe('token_revoked')
})

test('a gateway that keeps credentials in the control lane believes no copy of another lane', async () => {
  const { lanes, apiKeys } = cluster()
  const { lanes: control } = cluster({ control: true })
  const { secret } = await create(apiKeys)
  const name = `${lanes.keys.prefix}reference:${await credentialHash(secret)}`
  const record = parseStoredReference((await redis.direct.get(name)) ?? '')
  await redis.direct.set(name, await storedReference({ ...record, expiresAtSeconds: 1_000 }))
  expect(await admit(control, secret)).toBe('exp')
  await redis.direct.del(name)
  expect(await admit(control, secret)).toBe('reference_unknown')
})

test('keys of a lane that does not answer are listed, updated and found, with an unknown last use', async () => {
  const { lanes, state, apiKeys } = cluster()
  const { key, secret } = await create(apiKeys)
  const subject = apartFrom(lanes, [SUBJECT], 'other')
  const other = await apiKeys.create({ name: 'key', subject }, 'olga')
  for (const { prefix } of [laneOf(lanes, SUBJECT).keys, laneOf(lanes, subject).keys])
    for (const { id } of [key, other.key]) await redis.direct.set(`${prefix}api-key-use:${id}`, 5)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  state.fails = (lane) => lane === prefix
  const { items } = await apiKeys.list({ limit: 10 })
  expect(items.map(({ id, lastUsedAtSeconds }) => [id, lastUsedAtSeconds])).toEqual([
    [other.key.id, 5],
    [key.id, null],
  ])
  expect(await apiKeys.find(key.id)).toMatchObject({ id: key.id, lastUsedAtSeconds: null })
  expect(await apiKeys.identify(secret)).toMatchObject({ isPresent: true })
})

test('a query that only reads makes no copy of a key', async () => {
  const { lanes, calls, apiKeys } = cluster()
  const { secret } = await create(apiKeys)
  const { prefix } = laneOf(lanes, SUBJECT).keys
  const name = `${prefix}reference:${await credentialHash(secret)}`
  await redis.direct.del(name)
  calls.length = 0
  expect(await admit(lanes, secret, readOnlyStore)).toBeUndefined()
  await redis.direct.ping()
  // The lane of the hash; the note there and the control lane; the lane of the subject.
  expect(calls).toEqual([prefix, prefix, lanes.keys.prefix, prefix])
  expect(await redis.direct.exists(name)).toBe(0)
})
