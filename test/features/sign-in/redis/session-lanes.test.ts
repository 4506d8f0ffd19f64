/** Sessions and logins on a cluster: in which lanes they are, and how many calls a request of a browser costs. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../../src/access/admission/admission.ts'
import { windowOfPrincipal } from '../../../../src/access/admission/limit-key.ts'
import { createLaneAdmissionStore } from '../../../../src/access/admission/redis/lane-store.ts'
import type { DeferredLimit } from '../../../../src/access/admission/reference-resolver.ts'
import { withBroadcast } from '../../../../src/access/revocation/redis/broadcast.ts'
import { createRevocations } from '../../../../src/access/revocation/redis/revocations.ts'
import { credentialHash } from '../../../../src/access/tokens/reference.ts'
import { createReferences } from '../../../../src/access/tokens/references.ts'
import { Unavailable } from '../../../../src/errors.ts'
import type { Login } from '../../../../src/features/sign-in/provider.ts'
import { createProviderSessions } from '../../../../src/features/sign-in/provider-sessions.ts'
import { createSessionStore } from '../../../../src/features/sign-in/redis/session-store.ts'
import { createSeal } from '../../../../src/features/sign-in/seal.ts'
import { createSessions, ownerOf } from '../../../../src/features/sign-in/sessions.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { replicationKeys } from '../../../../src/redis/keys.ts'
import { ADDRESS, GATEWAY, IDP, nowSeconds, principal } from '../../../access/admission/callers.ts'
import { apartFrom, type Call, lanesOver } from '../../../access/admission/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { overResp } from '../../../harness/redis-protocols.ts'

const TERMS = { idleSeconds: 800, absoluteSeconds: 2_000, maxSessions: 3, roles: [] }
const provider = { seal: createSeal('a secret of the client') }

let redis: TestRedis
let server: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis()
  server = overResp(redis)
})
beforeEach(() => redis.direct.flushall())
afterAll(() => redis.close())

/** A removed session is unknown to an isolate that has not cached it. */
const ENDED = expect.stringMatching(/^token_(revoked|rejected)$/)

type Send = Parameters<typeof lanesOver>[2]

/** Creates a gateway with 64 lanes, of this version or, with `inControl`, beside gateways of an earlier one. */
function gateway({ inControl = false, send }: { inControl?: boolean; send?: Send } = {}) {
  const calls: string[] = []
  const counted: Send = (call: Call, pass) => {
    calls.push(call.keys.prefix)
    return send?.(call, pass) ?? pass()
  }
  const lanes = withBroadcast(lanesOver(server, 64, counted, inControl))
  const now = Date.now
  const store = createSessionStore(lanes, now)
  const revocations = createRevocations(lanes, now)
  const sessions = createSessions({ store, revocations, terms: TERMS, audience: GATEWAY, now })
  const ofProvider = createProviderSessions({ store, sessions, revocations, terms: TERMS, now })
  /** Sends a request of a browser that the isolate has not cached. */
  async function admit(text: string, limits: readonly DeferredLimit[] = []) {
    const verdict = await createAdmission({
      store: createLaneAdmissionStore(lanes),
      references: createReferences({ audience: GATEWAY }),
      now,
    }).admitReference({
      reference: { kind: 'session', text, hash: await credentialHash(text) },
      ...{ proof: undefined, address: ADDRESS, limits },
    })
    return verdict
  }
  return { lanes, calls, store, sessions, ofProvider, admit, laneOf: lanes.lanes.of }
}

type Gateway = ReturnType<typeof gateway>

const loginOf = (subject: string, providerSubject = subject): Login => ({
  principal: { ...principal({ subject }), issuer: IDP, tokenIssuer: IDP, tenant: undefined },
  tokens: { idToken: 'x.y.z' },
  refreshAtSeconds: undefined,
  providerSubject,
  providerSession: 'sid-1',
  facts: { acr: 'pwd', authTimeSeconds: nowSeconds() },
})

const open = ({ sessions }: Gateway, subject = 'anne', providerSubject = subject) =>
  sessions.open(loginOf(subject, providerSubject), provider, 'Browser')

async function userOf(of: Gateway, reference: string) {
  const { denial, principal: user } = await of.admit(reference)
  if (denial !== undefined || user == null) throw new Error('not admitted')
  return user
}

const rule = {
  name: 'few',
  by: 'subject',
  limit: 9,
  windowSeconds: 60,
  onUnavailable: 'deny',
} as const
const limit: DeferredLimit = {
  rule,
  window: { by: 'subject' },
  keyOf: (who) => windowOfPrincipal(rule, who),
}

describe('a session on a cluster', () => {
  test('is stored and admitted by one call each, in the lane of its subject', async () => {
    await open(gateway())
    await gateway().admit(await open(gateway()), [limit])
    const own = gateway()
    const reference = await open(own)
    const { prefix } = own.laneOf('anne').keys
    expect(own.calls).toEqual([prefix])
    own.calls.length = 0
    expect(await own.admit(reference, [limit])).toMatchObject({
      denial: undefined,
      principal: { subject: 'anne' },
    })
    expect(own.calls).toEqual([prefix])
  })

  test('is renewed in its lane, so that the new reference costs one call too', async () => {
    const own = gateway()
    const reference = await open(own)
    const user = await userOf(own, reference)
    own.calls.length = 0
    const next = (await own.sessions.renew(reference, user)) ?? ''
    await own.admit(next, [limit])
    expect(new Set(own.calls)).toEqual(new Set([own.laneOf('anne').keys.prefix]))
    expect(own.calls).toHaveLength(3)
  })

  test('has references of other hosts in its lane', async () => {
    const own = gateway()
    const { tokenId = '' } = await userOf(own, await open(own))
    own.calls.length = 0
    const opened = await own.sessions.openAt('shop.example', tokenId)
    await own.admit(opened?.reference ?? '', [limit])
    expect(new Set(own.calls)).toEqual(new Set([own.laneOf('anne').keys.prefix]))
  })

  test('of a user with another name at the provider is listed, and a logout of the provider ends it', async () => {
    const own = gateway()
    const other = apartFrom(own.lanes, ['anne'], 'provider-user')
    const references = [await open(own, 'anne', other), await open(own, 'anne', other)]
    const user = await userOf(own, references[0] ?? '')
    expect(await own.sessions.list(user)).toHaveLength(2)
    for (const reference of references)
      expect((await gateway().admit(reference)).denial).toBeUndefined()
    await gateway().ofProvider.endByProvider(IDP, {
      ...{ id: 'jti-1', providerSubject: other, providerSession: undefined },
      expiresAtSeconds: nowSeconds() + 60,
    })
    for (const reference of references)
      expect((await gateway().admit(reference)).denial?.code).toMatch(
        /^token_(?:revoked|rejected)$/,
      )
    expect(await own.sessions.list(user)).toEqual([])
  })

  test('that was listed and never stored takes the place of none that a user has', async () => {
    const own = gateway()
    const other = apartFrom(own.lanes, ['anne'], 'provider-user')
    const lane = own.laneOf('anne').keys.prefix
    const failing = gateway({
      send: ({ keys }, pass) =>
        keys.prefix === lane ? Promise.reject(new Unavailable('redis', 'unreachable')) : pass(),
    })
    const references = [await open(own, 'anne', other)]
    for (let login = 0; login < 2 * TERMS.maxSessions; login++)
      await expect(open(failing, 'anne', other)).rejects.toThrow(Unavailable)
    references.push(await open(own, 'anne', other), await open(own, 'anne', other))
    for (const reference of references) await userOf(own, reference)
    const user = await userOf(own, references[0] ?? '')
    expect(await own.sessions.list(user)).toHaveLength(TERMS.maxSessions)
    // One more than the maximum: the oldest ends.
    await open(own, 'anne', other)
    expect((await own.admit(references[0] ?? '')).denial).toMatchObject({ code: ENDED })
    expect((await own.admit(references[1] ?? '')).denial).toBeUndefined()
    // What was never stored leaves the list long before its end.
    const [list = ''] = await redis.direct.keys('*user-sessions:*')
    const soon = await redis.direct.zrangebyscore(list, '-inf', nowSeconds() + 61)
    expect(soon).toHaveLength(2 * TERMS.maxSessions)
    expect(await redis.direct.zcard(list)).toBe(3 * TERMS.maxSessions)
  })

  test('ends at once if its login took longer than it may be listed without a session', async () => {
    const own = gateway()
    const other = apartFrom(own.lanes, ['anne'], 'provider-user')
    const lane = own.laneOf('anne').keys.prefix
    const paused = gateway({
      async send({ keys }, pass) {
        // As if the life of the entry had ended before the session is stored.
        if (keys.prefix === lane)
          for (const list of await redis.direct.keys('*user-sessions:*'))
            await redis.direct.del(list)
        return pass()
      },
    })
    const reference = await open(paused, 'anne', other)
    expect((await own.admit(reference)).denial).toMatchObject({ code: ENDED })
  })

  test('ends although the lane of another subject does not answer', async () => {
    const own = gateway()
    const reference = await open(own)
    const user = await userOf(own, reference)
    const away = own.laneOf(apartFrom(own.lanes, ['anne'], 'other')).keys.prefix
    const ending = gateway({
      send: ({ keys }, pass) =>
        keys.prefix === away ? Promise.reject(new Unavailable('redis', 'unreachable')) : pass(),
    })
    const owner = ownerOf(user)
    if (owner === undefined) throw new Error('no owner')
    await ending.sessions.end(user.tokenId ?? '', owner)
    expect((await own.admit(reference)).denial).toBeDefined()
    const isolate = createAdmission({ store: createLaneAdmissionStore(own.lanes), now: Date.now })
    const cached = await isolate.admit({ principal: user, address: ADDRESS, limits: [] })
    expect(cached.denial).toMatchObject({ code: 'token_revoked' })
  })

  test.each(['of the list', 'of the session', 'of earlier versions'])(
    'is not missing from a list or a logout while the lane %s is away: both fail [R06]',
    async (which) => {
      const own = gateway()
      const other = apartFrom(own.lanes, ['anne'], 'provider-user')
      const user = await userOf(own, await open(own, 'anne', other))
      const lane = { 'of the list': other, 'of the session': 'anne' }[which]
      const away = (lane === undefined ? own.lanes : own.laneOf(lane)).keys.prefix
      const broken = gateway({
        send: ({ keys }, pass) =>
          keys.prefix === away ? Promise.reject(new Unavailable('redis', 'unreachable')) : pass(),
      })
      await expect(broken.sessions.list(user)).rejects.toThrow(Unavailable)
      const logout = {
        ...{ id: 'jti-1', providerSubject: other, providerSession: undefined },
        expiresAtSeconds: nowSeconds() + 60,
      }
      await expect(broken.ofProvider.endByProvider(IDP, logout)).rejects.toThrow()
    },
  )
})

describe('a logout of the provider that names only the user', () => {
  const logoutOf = (providerSubject: string) => ({
    ...{ id: 'jti-1', providerSubject, providerSession: undefined },
    expiresAtSeconds: nowSeconds() + 60,
  })

  test('while the lane of a session is away fails, is recorded, and ends the session when the lane is back [R06]', async () => {
    const own = gateway()
    const other = apartFrom(own.lanes, ['anne'], 'provider-user')
    const reference = await open(own, 'anne', other)
    const away = own.laneOf('anne').keys.prefix
    const ending = gateway({
      send: ({ keys }, pass) =>
        keys.prefix === away ? Promise.reject(new Unavailable('redis', 'unreachable')) : pass(),
    })
    await expect(ending.ofProvider.endByProvider(IDP, logoutOf(other))).rejects.toThrow(Unavailable)
    // Another gateway completes it, as if 2 s had passed.
    const { pendingFacts } = replicationKeys(own.lanes.keys)
    for (const mark of await redis.direct.zrange(pendingFacts, 0, -1))
      await redis.direct.zincrby(pendingFacts, -3e6, mark)
    await own.lanes.broadcast.complete(Date.now)
    expect((await own.admit(reference)).denial).toMatchObject({ code: 'token_revoked' })
  })

  test('ends a session whose login has only been listed yet', async () => {
    const own = gateway()
    const other = apartFrom(own.lanes, ['anne'], 'provider-user')
    const list = own.laneOf(other).keys.prefix
    let logout: Promise<void> | undefined
    const opening = gateway({
      async send({ keys }, pass) {
        if (keys.prefix === list) return pass()
        logout ??= own.ofProvider.endByProvider(IDP, logoutOf(other))
        await logout
        return pass()
      },
    })
    const reference = await open(opening, 'anne', other)
    expect(logout).toBeDefined()
    expect((await own.admit(reference)).denial).toMatchObject({ code: ENDED })
  })
})

describe('a session of an earlier version, in the control lane', () => {
  test('stays valid, is renewed, listed beside newer ones, and ended', async () => {
    const earlier = gateway({ inControl: true })
    const reference = await open(earlier)
    expect(await redis.direct.keys('pc:{c}:session:*')).toHaveLength(1)
    const own = gateway()
    const user = await userOf(own, reference)
    const next = (await own.sessions.renew(reference, user)) ?? ''
    expect(await userOf(own, next)).toMatchObject({ tokenId: user.tokenId })
    expect(await userOf(earlier, next)).toMatchObject({ tokenId: user.tokenId })
    await open(own)
    expect(await own.sessions.list(user)).toHaveLength(2)
    expect(await earlier.sessions.list(user)).toHaveLength(2)
    const owner = ownerOf(user)
    if (owner === undefined) throw new Error('no owner')
    await own.sessions.end(user.tokenId ?? '', owner)
    expect((await earlier.admit(next)).denial).toBeDefined()
    expect(await own.sessions.list(user)).toHaveLength(1)
  })

  test('is renewed to one reference by gateways with and without credentials=control', async () => {
    const own = gateway()
    const earlier = gateway({ inControl: true })
    for (const first of [own, earlier])
      for (const opened of [own, earlier]) {
        const reference = await open(opened)
        const user = await userOf(own, reference)
        const second = first === own ? earlier : own
        const next = (await first.sessions.renew(reference, user)) ?? ''
        expect(await second.sessions.renew(reference, user)).toBe(next)
        for (const one of [own, earlier])
          expect(await userOf(one, next)).toMatchObject({ tokenId: user.tokenId })
      }
  })
})

describe('a login in progress', () => {
  const login = { issuer: IDP, returnPath: '/', browserHash: 'b' }

  test('is in the lane of its state, and taken once', async () => {
    const own = gateway()
    await own.store.beginLogin('state-1', login, 60)
    expect(own.calls).toEqual([own.laneOf('state-1').keys.prefix])
    const taken = await Promise.all([own, gateway()].map((one) => one.store.takeLogin('state-1')))
    expect(taken.filter((one) => one !== undefined)).toEqual([login])
  })

  test('which an earlier version has begun, is taken once', async () => {
    await gateway({ inControl: true }).store.beginLogin('state-1', login, 60)
    expect(await redis.direct.keys('pc:{c}:sign-in:*')).toHaveLength(1)
    expect(await gateway().store.takeLogin('state-1')).toEqual(login)
    expect(await gateway().store.takeLogin('state-1')).toBeUndefined()
  })

  test.each([
    [true, false],
    [false, true],
  ])(
    'a logout token is used once by gateways with and without credentials=control',
    async (one, other) => {
      expect(await gateway({ inControl: other }).store.isLogoutTokenUsed('token')).toBe(false)
      expect(await gateway({ inControl: one }).store.useLogoutToken('token', 60)).toBe(true)
      expect(await gateway({ inControl: other }).store.isLogoutTokenUsed('token')).toBe(true)
      expect(await gateway({ inControl: other }).store.useLogoutToken('token', 60)).toBe(false)
    },
  )
})
