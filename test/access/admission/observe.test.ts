/**
 * Observe mode: requests that a rule would have refused are served, and the audit event names the
 * rule.
 */
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { BanDefinition } from '../../../src/access/abuse/definition.ts'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { newAddress } from '../../harness/address.ts'
import { recordsOf, startControlled } from '../../harness/control.ts'
import { startGateway } from '../../harness/gateway.ts'
import { AUDIENCE, ISSUER, mint } from '../../harness/issuer.ts'
import { nowSeconds, recordOf, stored, takenOf } from './callers.ts'

const origin = await startControlled(() => ({ status: 200, headers: {}, body: 'ok' }))
const whole = await startGateway({ origin, audience: [AUDIENCE] })
const { redis, key } = whole
const originCalls = async () => (await recordsOf(origin)).length
const token = (sub: string = crypto.randomUUID(), claims: object = {}) =>
  mint(key, { claims: { sub, ...claims } })
const OBSERVED_BAN = ['banned:address']

describe('observe mode', () => {
  afterAll(whole.close)
  beforeEach(async () => {
    redis.setAnswering(true)
    await redis.direct.flushall()
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const bans = () => createBanList(rest(), Date.now)
  const listed = async () => (await bans().list({ limit: 100 })).items
  /** Creates an opaque token that no isolate has cached. */
  const opaque = async (claims: object = {}) =>
    (await stored(createReferenceStore(rest()), recordOf({ scopes: [], ...claims }))).text

  function gateway(rule: BanDefinition | false = false) {
    const once = { limit: 1, windowSeconds: 86_400, onUnavailable: 'deny' } as const
    const watched = { ...once, mode: 'observe' } as const
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: {
        watched: { ...watched, by: 'subject' },
        ample: { ...once, limit: 1_000, by: 'subject' },
        forced: { ...once, by: 'subject' },
        from: { ...watched, by: 'address' },
      },
      routes: [
        { method: 'GET', path: '/free', permission: 'orders:read' },
        { method: 'GET', path: '/watched', permission: 'orders:read', limits: ['watched'] },
        { method: 'GET', path: '/both', permission: 'orders:read', limits: ['ample', 'watched'] },
        { method: 'GET', path: '/twice', permission: 'orders:read', limits: ['forced', 'watched'] },
        { method: 'GET', path: '/from', anonymous: true, limits: ['from'] },
        {
          method: 'GET',
          path: '/writers',
          permission: { name: 'orders:write', mode: 'observe' },
          limits: ['watched'],
        },
      ],
      abuse: { bans: rule },
    })
    return whole.client(policy)
  }

  test.each(['a JWT', 'an opaque token'])(
    'an observed limit counts, refuses nothing, and appears only in the audit trail: %s [S66]',
    async (kind) => {
      const { send, events } = gateway()
      const alice = kind === 'a JWT' ? await token('alice') : await opaque()
      for (let count = 0; count < 4; count++) {
        const response = await send('/watched', newAddress(), alice)
        expect(response.status).toBe(200)
        expect(response.headers.get('ratelimit')).toBeNull()
        expect(response.headers.get('ratelimit-policy')).toBeNull()
      }
      const reasons = ['rate_limited:watched']
      expect(events.map(({ observed }) => observed)).toEqual([undefined, reasons, reasons, reasons])
      expect(events.map(({ limits }) => limits)).toEqual(
        Array(4).fill([{ name: 'watched', limit: 1, remaining: 0 }]),
      )
      for (const event of events) expect(event).toMatchObject({ decision: 'allow', reason: 'ok' })
      const [counter] = await redis.direct.keys('pc:limit:watched:*')
      expect(takenOf(await redis.direct.get(counter ?? ''))).toBe(1)
    },
  )

  test('next to an enforced limit, only the enforced limit appears in the headers, with one call to Redis [S66]', async () => {
    const { send, events } = gateway()
    const alice = await token('alice')
    for (let count = 0; count < 2; count++) await send('/both', newAddress(), alice)
    const before = redis.calls()
    const response = await send('/both', newAddress(), alice)
    expect(redis.calls() - before).toBe(1)
    expect(response.headers.get('ratelimit-policy')).toBe('"ample";q=1000;w=86400')
    expect(response.headers.get('ratelimit')).toMatch(/^"ample";r=997;/)
    expect(events.at(-1)?.observed).toEqual(['rate_limited:watched'])
  })

  test('the audit event of a refused request lists the observed rules that would also refuse it', async () => {
    const { send, events } = gateway()
    const alice = await token('alice')
    expect((await send('/twice', newAddress(), alice)).status).toBe(200)
    const before = await originCalls()
    const response = await send('/twice', newAddress(), alice)
    expect(response.status).toBe(429)
    expect(response.headers.get('ratelimit-policy')).toBe('"forced";q=1;w=86400')
    expect(await originCalls()).toBe(before)
    expect(events.at(-1)).toMatchObject({
      decision: 'deny',
      reason: 'rate_limited:forced',
      observed: ['rate_limited:watched'],
    })
  })

  test('an observed limit that cannot be counted is no outage [R01]', async () => {
    const { send, events } = gateway()
    const alice = await token('alice')
    expect((await send('/watched', newAddress(), alice)).status).toBe(200)
    const [counter = ''] = await redis.direct.keys('pc:limit:watched:*')
    await redis.direct.del(counter)
    await redis.direct.lpush(counter, 'x')
    expect((await send('/watched', newAddress(), alice)).status).toBe(200)
    expect(events.at(-1)?.limits).toEqual([
      { name: 'watched', limit: 1, remaining: 0, unavailable: true },
    ])
    redis.setAnswering(false)
    expect((await send('/from', newAddress())).status).toBe(200)
    expect((await send('/watched', newAddress(), alice)).status).toBe(503)
  })

  test('an observed ban refuses no request, is listed and can be lifted, and costs no extra call [S66]', async () => {
    const { send, events } = gateway({ mode: 'observe' })
    const address = newAddress()
    const [alice, bob] = [await token('alice'), await opaque()]
    expect((await send('/free', address, alice)).status).toBe(200)
    for (let count = 0; count < 8; count++)
      expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    expect(events.every(({ observed }) => observed === undefined)).toBe(true)
    for (const credential of [alice, bob]) {
      const before = redis.calls()
      expect((await send('/free', address, credential)).status).toBe(200)
      expect(redis.calls() - before).toBe(1)
      expect(events.at(-1)).toMatchObject({ decision: 'allow', observed: OBSERVED_BAN })
    }
    // An automatic ban of an address concerns credentials only.
    expect((await send('/from', address)).status).toBe(200)
    expect(events.at(-1)?.observed).toBeUndefined()
    expect((await send('/free', newAddress(), alice)).status).toBe(200)
    expect(events.at(-1)?.observed).toBeUndefined()

    const [ban, ...more] = await listed()
    expect(more).toEqual([])
    expect(ban).toMatchObject({ kind: 'address', mode: 'observe', createdBy: 'portcullis' })
    expect(await bans().remove(ban?.id ?? '')).toBe(true)
    expect((await send('/free', address, alice)).status).toBe(200)
    expect(events.at(-1)?.observed).toBeUndefined()
  })

  test.each(['a JWT', 'an opaque token'])(
    'a subject with an observed ban is served from any address: %s',
    async (kind) => {
      const { send, events } = gateway({ violations: 1, mode: 'observe' })
      const claims = { issuer: ISSUER, subject: 'alice' }
      expect((await send('/twice', newAddress(), await token('alice'))).status).toBe(200)
      expect((await send('/twice', newAddress(), await token('alice'))).status).toBe(429)
      const credential = kind === 'a JWT' ? await token('alice') : await opaque(claims)
      expect((await send('/free', newAddress(), credential)).status).toBe(200)
      expect(events.at(-1)?.observed).toEqual(['banned:subject'])
    },
  )

  test('bans by operators are enforced while automatic bans are observed, and both are audited', async () => {
    const { send, events } = gateway({ violations: 1, mode: 'observe' })
    const address = newAddress()
    expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    const order = { issuer: undefined, issuers: [], seconds: 60, reason: undefined } as const
    const value = address.replace('::1', '::/64')
    await bans().create({ ...order, kind: 'address', value, createdBy: 'carol' })
    const before = await originCalls()
    expect((await send('/free', address, await token())).status).toBe(403)
    expect(events.at(-1)).toMatchObject({ reason: 'banned:address', observed: OBSERVED_BAN })
    expect((await send('/free', address, await opaque())).status).toBe(403)
    expect(events.at(-1)).toMatchObject({ reason: 'banned:address', observed: OBSERVED_BAN })
    expect(await originCalls()).toBe(before)
  })

  test('enforcing bans refuses no caller for violations that were only observed', async () => {
    const [{ send: watching }, { send: enforcing, events }] = [
      gateway({ violations: 1, mode: 'observe' }),
      gateway({ violations: 1 }),
    ]
    const address = newAddress()
    expect((await watching('/free', address, 'a.b.c')).status).toBe(401)
    expect(await listed()).toHaveLength(1)
    expect((await enforcing('/free', address, await token())).status).toBe(200)
    expect(events.at(-1)?.observed).toBeUndefined()
    expect((await enforcing('/free', address, 'a.b.c')).status).toBe(401)
    expect((await enforcing('/free', address, await token())).status).toBe(403)
  })

  test('an observed permission admits authenticated callers, and the audit names those who lack it [S66]', async () => {
    const { send, events } = gateway()
    const alice = await token('alice')
    for (let count = 0; count < 2; count++)
      expect((await send('/writers', newAddress(), alice)).status).toBe(200)
    expect(events[0]?.observed).toEqual(['permission_missing:orders:write'])
    expect(events[1]?.observed).toEqual(['rate_limited:watched', 'permission_missing:orders:write'])
    const before = await originCalls()
    const response = await send('/writers', newAddress())
    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ code: 'missing_token' })
    expect(events.at(-1)?.observed).toBeUndefined()
    expect(await originCalls()).toBe(before)
  })

  test('an observed rule weakens no enforced rule: bad, revoked and expired tokens are refused [S66]', async () => {
    const { send, events } = gateway({ mode: 'observe' })
    const revocations = createRevocations(rest(), Date.now)
    await revocations.revokeToken({
      tokenIdHash: await tokenIdHash(ISSUER, 'revoked'),
      untilSeconds: nowSeconds() + 300,
    })
    await revocations.revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: 'mallory',
      atSeconds: nowSeconds(),
      ttlSeconds: 300,
    })
    const before = await originCalls()
    const past = nowSeconds() - 600
    const credentials = [
      'a.b.c',
      crypto.randomUUID(),
      await token('alice', { jti: 'revoked' }),
      await token('mallory', { iat: nowSeconds() - 10 }),
      await token('alice', { iat: past - 60, exp: past }),
    ]
    for (const credential of credentials) {
      expect((await send('/writers', newAddress(), credential)).status).toBe(401)
      expect(events.at(-1)).toMatchObject({ decision: 'deny', status: 401 })
      expect(events.at(-1)?.observed).toBeUndefined()
    }
    expect(await originCalls()).toBe(before)
  })
})
