/** References on a cluster: where they are stored and how many rounds of calls a request with one costs. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../../src/access/admission/admission.ts'
import type { LimitRule } from '../../../../src/access/admission/limit.ts'
import { windowOfPrincipal } from '../../../../src/access/admission/limit-key.ts'
import { createLaneAdmissionStore } from '../../../../src/access/admission/redis/lane-store.ts'
import type { DeferredLimit } from '../../../../src/access/admission/reference-resolver.ts'
import { withBroadcast } from '../../../../src/access/revocation/redis/broadcast.ts'
import { createRevocations } from '../../../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../../../src/access/tokens/redis/references.ts'
import {
  credentialHash,
  type Reference,
  storedReference,
} from '../../../../src/access/tokens/reference.ts'
import { createReferences } from '../../../../src/access/tokens/references.ts'
import { createTokenIssuer } from '../../../../src/access/tokens/token-issuer.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { laneOf } from '../../../../src/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { overResp } from '../../../harness/redis-protocols.ts'
import { ADDRESS, GATEWAY, IDP, nowSeconds, recordOf } from '../callers.ts'
import { apartFrom, lanesOver } from './lanes.ts'

let redis: TestRedis
let server: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis()
  server = overResp(redis)
  // Redis caches the scripts, so that calls are counted without their texts.
  const { lanes } = countedLanes()
  const reference = await issue(lanes, 'anne')
  for (const by of ['subject', 'tenant'] as const) await admit(lanes, reference, [limitBy(by)])
})
beforeEach(async () => {
  await redis.direct.flushall()
})
afterAll(() => redis.close())

/** Creates 64 lanes that count calls by the prefix of their lane. */
function countedLanes() {
  const calls: string[] = []
  const lanes = withBroadcast(
    lanesOver(server, 64, ({ keys }, pass) => {
      calls.push(keys.prefix)
      return pass()
    }),
  )
  return { lanes, calls }
}

function limitBy(by: 'key' | 'subject' | 'tenant', limit = 3): DeferredLimit {
  const rule = { name: by, by, limit, windowSeconds: 3_600, onUnavailable: 'deny' } as const
  return {
    rule: rule satisfies LimitRule,
    window: { by },
    keyOf: (who) => windowOfPrincipal(rule, who),
  }
}

/** Sends a request with a reference that the isolate has not cached. */
const admit = (
  lanes: RedisConnection,
  reference: Reference,
  limits: readonly DeferredLimit[] = [],
) =>
  createAdmission({
    store: createLaneAdmissionStore(lanes),
    references: createReferences({ audience: GATEWAY }),
    now: Date.now,
  }).admitReference({ reference, proof: undefined, address: ADDRESS, limits })

const grantFor = (subject: string) => ({
  subject,
  subjectIssuer: IDP,
  client: 'app',
  roles: [],
  scopes: [],
  audiences: [GATEWAY],
})

/** Issues an opaque token as the token endpoint does. */
async function issue(lanes: RedisConnection, subject: string): Promise<Reference> {
  const issuer = createTokenIssuer({
    keys: [],
    issuer: GATEWAY,
    references: createReferenceStore(lanes),
    defaultTtlSeconds: 600,
  })
  const { token } = await issuer.issue(grantFor(subject), { format: 'opaque' })
  return { kind: 'opaque', text: token, hash: await credentialHash(token) }
}

describe('an opaque token on a cluster', () => {
  test('is stored in the lane of its subject, which its hash names, and admitted with one call there', async () => {
    const { lanes, calls } = countedLanes()
    const reference = await issue(lanes, 'anne')
    const { prefix } = laneOf(lanes, 'anne').keys
    expect(laneOf(lanes, reference.hash).keys.prefix).toBe(prefix)
    // The control lane has no part in it.
    expect(calls).toEqual([prefix])
    calls.length = 0
    const limits = [limitBy('subject'), limitBy('key')]
    const verdict = await admit(lanes, reference, limits)
    expect(verdict).toMatchObject({ denial: undefined, principal: { subject: 'anne' } })
    expect(verdict.limits.map(({ remaining }) => remaining)).toEqual([2, 2])
    expect(calls).toEqual([prefix])
  })

  test('counts in the windows of all other requests of its subject', async () => {
    const { lanes } = countedLanes()
    const limit = limitBy('subject', 2)
    const references = [await issue(lanes, 'anne'), await issue(lanes, 'anne')]
    const [first] = references
    if (first === undefined) throw new Error('no reference')
    for (const reference of references)
      expect((await admit(lanes, reference, [limit])).denial).toBeUndefined()
    expect(await admit(lanes, first, [limit])).toMatchObject({ denial: { code: 'rate_limited' } })
  })

  test('is refused by the next request after a revocation of its subject, its client or its session', async () => {
    const { lanes } = countedLanes()
    for (const [kind, value] of [
      ['subject', 'anne'],
      ['client', 'app'],
    ] as const) {
      await redis.direct.flushall()
      const reference = await issue(lanes, 'anne')
      expect(await admit(lanes, reference)).toMatchObject({ denial: undefined })
      await createRevocations(lanes, Date.now).revokeBefore({
        kind,
        issuer: kind === 'subject' ? IDP : GATEWAY,
        value,
        atSeconds: nowSeconds() + 1,
        ttlSeconds: 600,
      })
      expect(await admit(lanes, reference)).toMatchObject({
        denial: { code: 'token_revoked', by: kind },
      })
    }
  })

  test('costs two rounds, without the control lane, if a limit counts another party', async () => {
    const { lanes, calls } = countedLanes()
    const tenant = apartFrom(lanes, ['anne'], 'tenant')
    const store = createReferenceStore(lanes)
    const reference = await issue(lanes, 'anne')
    const record = await store.find(reference.hash)
    if (record === undefined) throw new Error('no record')
    await store.put(reference.hash, { ...record, tenant })
    calls.length = 0
    expect((await admit(lanes, reference, [limitBy('tenant')])).denial).toBeUndefined()
    const { prefix } = laneOf(lanes, 'anne').keys
    expect(calls).toEqual([prefix, prefix, laneOf(lanes, tenant).keys.prefix])
  })

  test('is found by its hash, and removed, wherever it is', async () => {
    const { lanes } = countedLanes()
    const store = createReferenceStore(lanes)
    const reference = await issue(lanes, 'anne')
    expect(await store.find(reference.hash)).toMatchObject({ subject: 'anne' })
    await store.remove(reference.hash)
    expect(await store.find(reference.hash)).toBeUndefined()
    expect(await admit(lanes, reference)).toMatchObject({
      denial: { code: 'token_rejected', check: 'reference_unknown' },
    })
  })
})

describe('a credential that was not drawn', () => {
  const text = 'a-reference-of-another-lane'
  /** Returns its reference, and a subject of another lane. */
  async function notDrawn(lanes: RedisConnection) {
    const hash = await credentialHash(text)
    const reference: Reference = { kind: 'opaque', text, hash }
    return {
      reference,
      subject: apartFrom(lanes as ReturnType<typeof countedLanes>['lanes'], [hash], 'subject'),
    }
  }

  test('of an earlier version is in the control lane, and admitted with one more round', async () => {
    const { lanes, calls } = countedLanes()
    const { reference, subject } = await notDrawn(lanes)
    const record = await storedReference(recordOf({ subject }))
    await redis.direct.set(lanes.keys.reference + reference.hash, record)
    const limit = limitBy('subject', 1)
    const verdict = await admit(lanes, reference, [limit])
    expect(verdict).toMatchObject({ denial: undefined, principal: { subject } })
    const home = laneOf(lanes, reference.hash).keys.prefix
    // The lane of its hash; what this lane and the control lane have of it; the lane of its subject.
    expect(calls).toEqual([home, home, lanes.keys.prefix, laneOf(lanes, subject).keys.prefix])
    expect(await admit(lanes, reference, [limit])).toMatchObject({
      denial: { code: 'rate_limited' },
    })
    expect(await createReferenceStore(lanes).find(reference.hash)).toMatchObject({ subject })
  })

  test('is issued to the control lane while gateways of an earlier version run', async () => {
    const { lanes } = countedLanes()
    const earlier = lanesOver(server, 64, undefined, true)
    const reference = await issue(earlier, 'anne')
    const keys = await redis.direct.keys('*')
    expect(keys).toEqual([lanes.keys.reference + reference.hash])
    expect(await admit(lanes, reference)).toMatchObject({ principal: { subject: 'anne' } })
    expect(await admit(earlier, await issue(lanes, 'anne'))).toMatchObject({ denial: undefined })
  })

  test('is named by the lane of its hash, and admitted and refused in that of its subject', async () => {
    const { lanes } = countedLanes()
    const { reference, subject } = await notDrawn(lanes)
    await createReferenceStore(lanes).put(reference.hash, recordOf({ subject }))
    expect(await redis.direct.keys(`*${reference.hash}`)).toEqual(
      expect.arrayContaining([
        laneOf(lanes, subject).keys.reference + reference.hash,
        `${laneOf(lanes, reference.hash).keys.prefix}moved:${reference.hash}`,
      ]),
    )
    expect(await admit(lanes, reference)).toMatchObject({
      denial: undefined,
      principal: { subject },
    })
    await createRevocations(lanes, Date.now).revokeBefore({
      kind: 'subject',
      issuer: IDP,
      value: subject,
      atSeconds: nowSeconds() + 1,
      ttlSeconds: 600,
    })
    expect(await admit(lanes, reference)).toMatchObject({ denial: { code: 'token_revoked' } })
  })

  test('is judged in the lane of its subject even if the lane of its hash has the record', async () => {
    const { lanes } = countedLanes()
    const { reference, subject } = await notDrawn(lanes)
    const wrong = laneOf(lanes, reference.hash).keys.reference + reference.hash
    await redis.direct.set(wrong, await storedReference(recordOf({ subject })))
    await createRevocations(lanes, Date.now).revokeBefore({
      kind: 'subject',
      issuer: IDP,
      value: subject,
      atSeconds: nowSeconds() + 1,
      ttlSeconds: 600,
    })
    expect(await admit(lanes, reference)).toMatchObject({ denial: { code: 'token_revoked' } })
  })

  test('is an outage, not unknown, if the note of its lane cannot be read [R06]', async () => {
    const { lanes } = countedLanes()
    const { reference } = await notDrawn(lanes)
    for (const note of ['', '64', 'x', '1.0']) {
      await redis.direct.set(
        `${laneOf(lanes, reference.hash).keys.prefix}moved:${reference.hash}`,
        note,
      )
      await expect(admit(lanes, reference)).rejects.toThrow()
    }
  })

  test('is an outage, not unknown, if a lane that may have it does not answer [R06]', async () => {
    for (const failing of ['home', 'control'] as const) {
      const { lanes } = countedLanes()
      const { reference } = await notDrawn(lanes)
      const home = laneOf(lanes, reference.hash).keys.prefix
      const broken = lanesOver(server, 64, ({ keys }, pass) =>
        keys.prefix === (failing === 'home' ? home : lanes.keys.prefix)
          ? Promise.resolve([{ error: 'ERR broken' }])
          : pass(),
      )
      await expect(createReferenceStore(broken).find(reference.hash)).rejects.toThrow()
      await expect(admit(broken, reference)).rejects.toThrow()
    }
  })
})
