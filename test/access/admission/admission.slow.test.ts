import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { addressBanKey, subjectBanKey } from '../../../src/access/abuse/ban.ts'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../../src/errors.ts'
import { admit } from '../../../src/middleware/admit.ts'
import type { GatewayVariables } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { limitOf, nowSeconds, principal } from './callers.ts'

describe.each(['auto', 'embedded'] as const)('admission over Redis (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const admission = () =>
    createAdmission({ store: createRedisAdmissionStore(rest()), now: Date.now })
  const revocations = () => createRevocations(rest(), Date.now)
  const request = (who: Principal | null, limits: readonly LimitRequest[] = []) => ({
    principal: who,
    address: '192.0.2.1',
    limits,
  })
  /** Redis may not have the limiter's script yet, which costs an extra call once. */
  const warmUp = () => admission().admit(request(null, [limitOf()]))

  test('an admitted request costs exactly one call, including every lookup and two limits', async () => {
    await warmUp()
    const gateway = admission()
    const before = redis.calls()
    const verdict = await gateway.admit(request(principal(), [limitOf(), limitOf({ limit: 9 })]))
    expect(verdict.denial).toBeUndefined()
    expect(verdict.limits.map(({ remaining }) => remaining)).toEqual([2, 8])
    expect(redis.calls() - before).toBe(1)
  })

  test('an anonymous request without limits costs no call', async () => {
    const before = redis.calls()
    expect((await admission().admit(request(null))).denial).toBeUndefined()
    expect(redis.calls() - before).toBe(0)
  })

  test('a revoked token is refused at once in every isolate, and then without a call', async () => {
    const who = principal()
    const [here, there] = [admission(), admission()]
    expect((await here.admit(request(who))).denial).toBeUndefined()
    await revocations().revokeToken({
      tokenIdHash: who.tokenIdHash ?? '',
      untilSeconds: who.expiresAtSeconds,
    })
    for (const gateway of [here, there]) {
      expect((await gateway.admit(request(who))).denial).toEqual({
        code: 'token_revoked',
        by: 'token',
      })
    }
    const before = redis.calls()
    expect((await here.admit(request(who))).denial?.code).toBe('token_revoked')
    expect(redis.calls() - before).toBe(0)
  })

  test.each(['session', 'subject', 'client', 'tenant'] as const)(
    'a cutoff by %s revokes tokens issued up to its second, and no later ones [S33]',
    async (kind) => {
      const atSeconds = nowSeconds()
      const old = principal({ issuedAtSeconds: atSeconds })
      const value = old[kind] ?? ''
      await revocations().revokeBefore({
        kind,
        issuer: old.issuer,
        value,
        atSeconds,
        ttlSeconds: 600,
      })
      const later = { ...old, tokenIdHash: 'later', issuedAtSeconds: atSeconds + 1 }
      const other = 'https://other.test'
      const elsewhere = { ...old, tokenIdHash: 'elsewhere', issuer: other, tokenIssuer: other }
      expect((await admission().admit(request(old))).denial).toEqual({
        code: 'token_revoked',
        by: kind,
      })
      expect((await admission().admit(request(later))).denial).toBeUndefined()
      expect((await admission().admit(request(elsewhere))).denial).toBeUndefined()
    },
  )

  test('an earlier cutoff never replaces a later one, and a cutoff can be deleted', async () => {
    const who = principal()
    const revokeBefore = { kind: 'subject', issuer: who.issuer, value: who.subject } as const
    const revoke = revocations()
    await revoke.revokeBefore({ ...revokeBefore, atSeconds: nowSeconds(), ttlSeconds: 600 })
    await revoke.revokeBefore({ ...revokeBefore, atSeconds: 1, ttlSeconds: 5 })
    expect((await admission().admit(request(who))).denial?.code).toBe('token_revoked')
    await revoke.liftRevokedBefore(revokeBefore)
    expect((await admission().admit(request(who))).denial).toBeUndefined()
  })

  test('every key has a time to live [S34, R18]', async () => {
    const who = principal()
    await revocations().revokeToken({ tokenIdHash: 'x', untilSeconds: nowSeconds() + 9 })
    await revocations().revokeBefore({
      kind: 'tenant',
      issuer: who.issuer,
      value: 'acme',
      atSeconds: 1,
      ttlSeconds: 9,
    })
    await admission().admit(request(who, [limitOf()]))
    const keys = await redis.direct.keys('*')
    // The token, its tenant, the feed entries for both, and the window.
    expect(keys.length).toBe(4)
    for (const key of keys) expect(await redis.direct.ttl(key), key).toBeGreaterThan(0)
  })

  test('200 parallel requests at a limit of 10 over two isolates admit exactly 10 [R15]', async () => {
    await warmUp()
    const limit = limitOf({ limit: 10 })
    const gateways = [admission(), admission()]
    const verdicts = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        gateways[index % 2]?.admit(request(principal(), [limit])),
      ),
    )
    expect(verdicts.filter((verdict) => verdict?.denial === undefined).length).toBe(10)
  })

  test('an exhausted limit refuses without a call, with a Retry-After', async () => {
    const [wide, narrow] = [limitOf({ limit: 5 }), limitOf({ limit: 1 })]
    const gateway = admission()
    await gateway.admit(request(null, [wide, narrow]))
    const refused = await gateway.admit(request(null, [wide, narrow]))
    expect(refused.denial).toMatchObject({ code: 'rate_limited', limit: 'test' })
    const before = redis.calls()
    const again = await gateway.admit(request(null, [wide, narrow]))
    expect(again.denial).toMatchObject({ code: 'rate_limited' })
    expect(again.denial?.code === 'rate_limited' && again.denial.retryAfterSeconds).toBeGreaterThan(
      0,
    )
    expect(redis.calls() - before).toBe(0)
  })

  test('an exhausted limit refuses for at most two windows, although the clock was set back by a day', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const setBack = () => vi.setSystemTime(Date.now() - 86_400_000)
    const gateway = admission()
    const limit = limitOf({ limit: 1, windowSeconds: 60 })
    await gateway.admit(request(null, [limit]))
    expect((await gateway.admit(request(null, [limit]))).denial?.code).toBe('rate_limited')
    setBack()
    const { denial } = await gateway.admit(request(null, [limit]))
    expect(denial).toMatchObject({ code: 'rate_limited' })
    // One window, and two if Redis has the same clock.
    expect(denial?.code === 'rate_limited' && denial.retryAfterSeconds).toBeLessThanOrEqual(120)
    await redis.direct.flushall()
    setBack()
    expect((await gateway.admit(request(null, [limit]))).denial).toBeUndefined()
  })

  test('an exhausted limit does not affect another limit of the same subject', async () => {
    const gateway = new Hono<{ Variables: GatewayVariables }>()
    gateway.onError(problemHandler())
    const who = principal()
    gateway.use(async (c, next) => {
      c.set('portcullis.principal', who)
      c.set('portcullis.clientAddress', '192.0.2.1')
      await next()
    })
    const decisions = admission()
    const rule = { by: 'subject', windowSeconds: 86_400, onUnavailable: 'deny' } as const
    const [wide, narrow] = [
      { ...rule, name: 'wide', limit: 9 },
      { ...rule, name: 'narrow', limit: 1 },
    ]
    gateway.get('/wide', admit({ admission: decisions, limits: [wide] }), (c) => c.text(''))
    gateway.get('/both', admit({ admission: decisions, limits: [wide, narrow] }), (c) => c.text(''))
    const statusOf = async (path: string) => (await gateway.request(path)).status
    expect([await statusOf('/both'), await statusOf('/both')]).toEqual([200, 429])
    expect([await statusOf('/both'), await statusOf('/wide')]).toEqual([429, 200])
  })

  test('a cutoff of one session refuses no other session, whether or not the tokens have ids', async () => {
    const ids = { subject: 'alice', tokenId: undefined, tokenIdHash: undefined }
    const [one, other] = [principal(ids), principal(ids)]
    await revocations().revokeBefore({
      kind: 'session',
      issuer: one.issuer,
      value: one.session ?? '',
      atSeconds: nowSeconds(),
      ttlSeconds: 600,
    })
    const gateway = admission()
    expect((await gateway.admit(request(one))).denial?.code).toBe('token_revoked')
    expect((await gateway.admit(request(other))).denial).toBeUndefined()
  })

  test('banned addresses and subjects are refused with the remaining time', async () => {
    const who = principal()
    await redis.direct.set(
      await addressBanKey(DEFAULT_KEYS, '192.0.2.1'),
      String(nowSeconds() + 100),
    )
    await redis.direct.set(
      await subjectBanKey(DEFAULT_KEYS, who.issuer, who.subject),
      String(nowSeconds() + 1000),
    )
    expect((await admission().admit(request(null, [limitOf()]))).denial).toMatchObject({
      code: 'banned',
      by: 'address',
    })
    expect((await admission().admit(request(who))).denial).toMatchObject({
      code: 'banned',
      by: 'subject',
    })
  })

  test('a key of the wrong type is an outage, not "not revoked" [R12]', async () => {
    const who = principal()
    await redis.direct.hset(`pc:revoked:${who.tokenIdHash}`, 'a', 'b')
    await expect(admission().admit(request(who))).rejects.toBeInstanceOf(Unavailable)
  })

  test('an unreadable cutoff is an outage, not "no cutoff" [R12]', async () => {
    const who = principal()
    await revocations().revokeBefore({
      kind: 'subject',
      issuer: who.issuer,
      value: who.subject,
      atSeconds: 1,
      ttlSeconds: 60,
    })
    const [key] = await redis.direct.keys('pc:cutoff:*')
    await redis.direct.set(key ?? '', 'soon', 'EX', 60)
    await expect(admission().admit(request(who))).rejects.toBeInstanceOf(Unavailable)
  })

  test.each(['deny', 'allow'] as const)(
    'a window of the wrong type fails as its onUnavailable says (%s) [R12]',
    async (onUnavailable) => {
      const limit = limitOf({ onUnavailable })
      const gateway = admission()
      await gateway.admit(request(null, [limit]))
      for (const key of await redis.direct.keys('pc:limit:*')) {
        await redis.direct.del(key)
        await redis.direct.hset(key, 'a', 'b')
      }
      const decided = gateway.admit(request(principal(), [limit]))
      if (onUnavailable === 'deny') await expect(decided).rejects.toBeInstanceOf(Unavailable)
      else expect(await decided).toMatchObject({ denial: undefined, uncounted: ['test'] })
    },
  )

  test('after SCRIPT FLUSH the script is sent once and the request counted once [R12]', async () => {
    const limit = limitOf()
    const gateway = admission()
    await gateway.admit(request(null, [limit]))
    await redis.direct.script('FLUSH')
    const before = redis.calls()
    const verdict = await gateway.admit(request(null, [limit]))
    expect(verdict.limits[0]?.remaining).toBe(1)
    expect(redis.calls() - before).toBe(2)
  })
})
