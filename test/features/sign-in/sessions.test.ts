/** The life of a session: renewal of its reference, idle time, end, and the number of sessions. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import {
  checkRecord,
  credentialHash,
  principalOfRecord,
} from '../../../src/access/tokens/reference.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { placeOf } from '../../../src/features/sign-in/pages/place.ts'
import type { Login } from '../../../src/features/sign-in/provider.ts'
import { createSessionStore } from '../../../src/features/sign-in/redis/session-store.ts'
import { createSeal } from '../../../src/features/sign-in/seal.ts'
import { createSessions, ownerOf } from '../../../src/features/sign-in/sessions.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { connectionOf, LANE } from '../../harness/lanes.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

const IDP = 'https://login.example.com'
const TERMS = { idleSeconds: 800, absoluteSeconds: 2_000, maxSessions: 3, roles: ['member'] }
const startMs = Date.now()

let redis: TestRedis
let nowMs = startMs
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())
beforeEach(async () => {
  nowMs = startMs
  await redis.direct.flushall()
})

const now = () => nowMs
let lanes = 0
const connections = new Map<number, RedisConnection>()
function rest(): RedisConnection {
  const known = connections.get(lanes) ?? connectionOf(redis, lanes)
  connections.set(lanes, known)
  return known
}
/** Returns the only key of a name, in whichever lane it is. */
async function keyOf(name: string): Promise<string> {
  const keys = await redis.direct.keys(`pc:*${name}`)
  const found = keys.filter((key) => new RegExp(`^${LANE}${name}$`).test(key))
  expect(found).toHaveLength(1)
  return found[0] ?? ''
}
const gateway = () =>
  createSessions({
    store: createSessionStore(rest(), now),
    revocations: createRevocations(rest(), now),
    terms: TERMS,
    audience: 'https://gateway.example',
    now,
  })
const provider = { seal: createSeal('a secret of the client') }
const principal: Principal = {
  issuer: IDP,
  tokenIssuer: IDP,
  subject: 'alice',
  client: 'gateway',
  tenant: undefined,
  session: undefined,
  roles: ['reader'],
  scopes: ['openid'],
  tokenId: undefined,
  tokenIdHash: undefined,
  confirmation: undefined,
  issuedAtSeconds: 0,
  expiresAtSeconds: 0,
}
const login: Login = {
  principal,
  tokens: { idToken: 'x.y.z' },
  refreshAtSeconds: undefined,
  providerSubject: 'alice',
  providerSession: 'sid-1',
  facts: { acr: 'pwd', authTimeSeconds: Math.floor(startMs / 1000) - 10 },
}
const open = () => gateway().open(login, provider, 'Browser')
async function found(reference: string) {
  const record = await createReferenceStore(rest()).find(await credentialHash(reference))
  return record && principalOfRecord(record)
}
const change = ({ tokenId = '' }: Principal, roles: string[]) =>
  createSessionStore(rest(), now).changeRecord(tokenId, (record) => ({ ...record, roles }))
const user = async (reference: string) => (await found(reference)) ?? principal
const afterStart = (seconds: number | undefined) => (seconds ?? 0) - Math.floor(startMs / 1000)

describe.each([0, 4])('with %i lanes', (count) => {
  beforeEach(() => {
    lanes = count
  })

  test('a session has the roles of the provider and of the policy, and no scopes', async () => {
    const { roles, scopes, session, signIn, ...rest } = await user(await open())
    expect({ roles, scopes, session }).toEqual({
      roles: ['reader', 'member'],
      scopes: [],
      session: 'sid-1',
    })
    expect(afterStart(rest.expiresAtSeconds)).toBe(800)
    expect(afterStart(signIn?.renewAtSeconds)).toBe(100)
    expect(afterStart(signIn?.endsAtSeconds)).toBe(2_000)
  })

  test('renewals move the idle end, never beyond the end of the session, and not the issue', async () => {
    let reference = await open()
    const ends: number[] = []
    for (const seconds of [100, 700, 1_400, 1_900]) {
      nowMs = startMs + seconds * 1000
      reference = (await gateway().renew(reference, await user(reference))) ?? ''
      const { expiresAtSeconds, issuedAtSeconds } = await user(reference)
      ends.push(afterStart(expiresAtSeconds))
      expect(afterStart(issuedAtSeconds)).toBe(0)
    }
    expect(ends).toEqual([900, 1_500, 2_000, 2_000])
  })

  test('concurrent renewals of many isolates agree on one reference', async () => {
    const reference = await open()
    const known = await user(reference)
    const renewed = await Promise.all(
      Array.from({ length: 20 }, () => gateway().renew(reference, known)),
    )
    expect(new Set(renewed).size).toBe(1)
    expect(renewed[0]).not.toBe(reference)
    expect((await user(renewed[0] ?? '')).subject).toBe('alice')
  })

  test('the old reference stays valid for five minutes, and is not renewed twice', async () => {
    const reference = await open()
    const known = await user(reference)
    const next = (await gateway().renew(reference, known)) ?? ''
    const ttl = await redis.direct.ttl(await keyOf(`reference:${await credentialHash(reference)}`))
    expect(ttl).toBeLessThanOrEqual(300)
    expect(await gateway().renew(next, await user(next))).toMatch(/^pcb_/)
    expect(await gateway().renew(reference, known)).toBeUndefined()
  })

  test('a renewal keeps changed rights, although the isolate has cached the old ones', async () => {
    const reference = await open()
    const known = await user(reference)
    await change(known, ['auditor'])
    const next = (await gateway().renew(reference, known)) ?? ''
    expect((await user(next)).roles).toEqual(['auditor'])
  })

  test('rights that change during renewals are not lost', async () => {
    const reference = await open()
    const known = await user(reference)
    const [next = ''] = await Promise.all([
      gateway().renew(reference, known),
      change(known, ['auditor']),
      gateway().renew(reference, known),
    ])
    // Either may be first. A renewal that meets a change is left to the next request.
    expect((await user(next === '' ? reference : next)).roles).toEqual(['auditor'])
  })

  test('a session whose idle time has ended is not listed, and is refused at once', async () => {
    const reference = await open()
    const known = await user(reference)
    expect(await gateway().list(known)).toHaveLength(1)
    const record = await createReferenceStore(rest()).find(await credentialHash(reference))
    if (record === undefined) throw new Error('no record')
    const failed = (seconds: number) =>
      checkRecord(record, { audience: record.audiences[0] ?? '', nowMs: startMs + seconds * 1000 })
    expect([failed(799), failed(801)]).toEqual([undefined, 'exp'])
    const cache = createReferences({ audience: 'x', now })
    cache.remember(reference, known)
    nowMs = startMs + 799_000
    expect(await gateway().list(known)).toHaveLength(1)
    cache.remember(reference, known)
    expect(cache.recall(reference)).toBeDefined()
    nowMs = startMs + 801_000
    expect(cache.recall(reference)).toBeUndefined()
    // The store still has the record, and the list of the user the session.
    expect(await found(reference)).toBeDefined()
    expect(await gateway().list(known)).toEqual([])
  })

  test('the list has the last activity to an eighth of the idle time, and the place of the login', async () => {
    const place = { city: 'Munich', country: 'DE' }
    const reference = await gateway().open(login, provider, 'Browser', place)
    const known = await user(reference)
    const listed = async () => {
      const [session] = await gateway().list(known)
      return { ...session, activeAtSeconds: afterStart(session?.activeAtSeconds) }
    }
    expect(await listed()).toMatchObject({ ...place, activeAtSeconds: 0 })
    // The renewal of a request at 420 s. Requests until 519 s write nothing.
    nowMs = startMs + 420_000
    await gateway().renew(reference, known)
    nowMs = startMs + 519_000
    expect(await listed()).toMatchObject({ ...place, activeAtSeconds: 420 })
  })

  test('a place that another version wrote is not shown, and the session is', async () => {
    const known = await user(await open())
    await redis.direct.hset(await keyOf(`session:${known.tokenId}`), 'place', '["Munich"]')
    expect(await gateway().list(known)).toEqual([
      {
        id: known.tokenId,
        createdAtSeconds: Math.floor(startMs / 1000),
        activeAtSeconds: Math.floor(startMs / 1000),
        userAgent: 'Browser',
        providerSession: 'sid-1',
      },
    ])
  })

  /** What a platform may say, and what the session stores. */
  test.each([
    [undefined, {}],
    [
      { city: 'Munich', country: 'DE' },
      { city: 'Munich', country: 'DE' },
    ],
    [{ city: '', country: 'XX' }, {}],
    [{ city: 7, country: 'T1' }, {}],
    [{ city: 'x'.repeat(500), country: '<b>' }, { city: 'x'.repeat(80) }],
    [
      { city: ' São Paulo ', country: 'br' },
      { city: 'São Paulo', country: 'BR' },
    ],
    [{ city: '?', country: 'ZZ' }, {}],
    [{ city: 'Paris\nBerlin', country: 'DE, FR' }, {}],
    [{ city: 'Paris\u202eeb', country: 'D' }, {}],
  ])('the place of %j is %j', (cf, place) => {
    expect(placeOf(cf)).toEqual(place)
  })

  test('an ended session has no references, is revoked, and cannot be renewed', async () => {
    const reference = await open()
    const known = await user(reference)
    const next = (await gateway().renew(reference, known)) ?? ''
    const owner = ownerOf(known)
    if (owner === undefined) throw new Error('no owner')
    await gateway().end(known.tokenId ?? '', owner)
    expect([await found(reference), await found(next)]).toEqual([undefined, undefined])
    expect(await redis.direct.exists(`pc:revoked:${known.tokenIdHash}`)).toBe(1)
    expect(await gateway().renew(next, known)).toBeUndefined()
    expect(await gateway().list(known)).toEqual([])
  })

  test.each([
    ['ends the oldest session', 10_000],
    ['ends the oldest session, also of the same second', 1],
  ])('a login above the maximum %s', async (_, distanceMs) => {
    const references: string[] = []
    const firstMs = Math.ceil(startMs / 1_000) * 1_000
    for (let n = 0; n < 5; n++) {
      nowMs = firstMs + n * distanceMs
      references.push(await open())
    }
    const all = await Promise.all(references.map(found))
    expect(all.map((one) => one !== undefined)).toEqual([false, false, true, true, true])
    expect(await gateway().list(await user(references[4] ?? ''))).toHaveLength(3)
  })

  test('a login above the maximum keeps its own session, with a clock behind the others', async () => {
    for (let n = 0; n < 3; n++) await open()
    nowMs = startMs - 60_000
    const own = await open()
    expect(await found(own)).toBeDefined()
    expect(await gateway().list(await user(own))).toHaveLength(3)
  })

  test('every key has an expiry', async () => {
    await open()
    for (const key of await redis.direct.keys('*'))
      expect(await redis.direct.ttl(key)).toBeGreaterThan(0)
  })

  test('tokens are readable only with the secret, and for their session', async () => {
    const sealed = await provider.seal.close('token', 'session-1')
    expect(sealed).not.toContain('token')
    expect(await provider.seal.open(sealed, 'session-1')).toBe('token')
    expect(await provider.seal.open(sealed, 'session-2')).toBeUndefined()
    expect(await createSeal('another secret').open(sealed, 'session-1')).toBeUndefined()
    expect(await provider.seal.open('x', 'session-1')).toBeUndefined()
  })

  test('the session of another host has a reference of its own, with the rights and the end of the login', async () => {
    const first = await open()
    const { tokenId = '' } = await user(first)
    nowMs = startMs + 1_900_000
    expect(await gateway().openAt('shop.example', tokenId)).toBeUndefined()
    nowMs = startMs + 700_000
    const opened = await gateway().openAt('shop.example', tokenId)
    const { signIn, ...shop } = await user(opened?.reference ?? '')
    expect(opened?.reference).not.toBe(first)
    expect([shop.tokenId, shop.roles, signIn?.host]).toEqual([
      tokenId,
      ['reader', 'member'],
      'shop.example',
    ])
    expect([afterStart(shop.expiresAtSeconds), afterStart(signIn?.endsAtSeconds)]).toEqual([
      1_500, 2_000,
    ])
    expect(afterStart(shop.issuedAtSeconds)).toBe(0)
  })

  test('a request to another host keeps the login alive at PUBLIC_URL, but not a third host', async () => {
    const first = await open()
    const { tokenId = '' } = await user(first)
    const shop = (await gateway().openAt('shop.example', tokenId))?.reference ?? ''
    const desk = (await gateway().openAt('desk.example', tokenId))?.reference ?? ''
    nowMs = startMs + 700_000
    const known = await user(shop)
    const next = (await gateway().renew(shop, known)) ?? ''
    await gateway().keepAlive(known)
    const ends = await Promise.all(
      [first, next, desk].map(async (each) => afterStart((await user(each)).expiresAtSeconds)),
    )
    expect(ends).toEqual([1_500, 1_500, 800])
    expect((await user(next)).signIn?.host).toBe('shop.example')
    expect(
      await redis.direct.ttl(await keyOf(`reference:${await credentialHash(first)}`)),
    ).toBeGreaterThan(790)
  })

  test('changed rights apply at all hosts, and the end of a session removes the references of all', async () => {
    const first = await open()
    const known = await user(first)
    const shop = (await gateway().openAt('shop.example', known.tokenId ?? ''))?.reference ?? ''
    const renewed = (await gateway().renew(shop, await user(shop))) ?? ''
    await change(known, ['auditor'])
    expect((await user(first)).roles).toEqual(['auditor'])
    expect((await user(renewed)).roles).toEqual(['auditor'])
    const owner = ownerOf(known)
    if (owner === undefined) throw new Error('no owner')
    await gateway().end(known.tokenId ?? '', owner)
    expect(await redis.direct.keys('pc:*reference:*')).toEqual([])
    expect(await gateway().openAt('shop.example', known.tokenId ?? '')).toBeUndefined()
  })

  test('rights that change while a login is kept alive are not lost', async () => {
    const first = await open()
    const { tokenId = '' } = await user(first)
    const shop = (await gateway().openAt('shop.example', tokenId))?.reference ?? ''
    const known = await user(shop)
    nowMs = startMs + 500_000
    await Promise.all([
      gateway().keepAlive(known),
      change(known, ['auditor']),
      gateway().keepAlive(known),
    ])
    const { roles, expiresAtSeconds } = await user(first)
    expect([roles, afterStart(expiresAtSeconds)]).toEqual([['auditor'], 1_300])
  })
})
