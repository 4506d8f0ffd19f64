/** The refusals that an isolate caches, with a clock that the test sets. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { revokedTokenKey } from '../../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, limitOf, nowSeconds, principal } from './callers.ts'

describe('an isolate that has refused a token', () => {
  let redis: TestRedis
  let nowMs = Date.now()
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    await redis.direct.flushall()
    nowMs = Date.now()
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const isolate = () =>
    createAdmission({ store: createRedisAdmissionStore(rest()), now: () => nowMs })
  const revocations = () => createRevocations(rest(), Date.now)
  const revoke = (who: Principal) =>
    revocations().revokeToken({
      tokenIdHash: who.tokenIdHash ?? '',
      untilSeconds: nowSeconds() + 600,
    })
  const cutOffOf = (who: Principal) =>
    ({ kind: 'subject', issuer: who.issuer, value: who.subject }) as const
  const counted = async () => (await redis.direct.keys('pc:limit:*')).length
  const calls = async (act: () => Promise<unknown>) => {
    const before = redis.calls()
    await act()
    return redis.calls() - before
  }

  test('refuses a revoked token without a call for ten seconds, then calls Redis again, and counts nothing', async () => {
    const who = principal()
    const request = { principal: who, address: ADDRESS, limits: [] }
    const limited = { ...request, limits: [limitOf()] }
    const here = isolate()
    await revoke(who)
    expect((await here.admit(request)).denial?.code).toBe('token_revoked')
    nowMs += 9_999
    expect(await calls(() => here.admit(limited))).toBe(0)
    for (let round = 0; round < 3; round++) {
      nowMs += 10_000
      expect(await calls(() => here.admit(limited))).toBe(1)
      expect(await calls(() => here.admit(limited))).toBe(0)
      expect((await here.admit(limited)).denial?.code).toBe('token_revoked')
    }
    expect(await counted()).toBe(0)
  })

  test('admits the token again ten seconds after the revocation is deleted, and counts it once', async () => {
    const who = principal()
    const limit = limitOf()
    const here = isolate()
    await revoke(who)
    expect(
      (await here.admit({ principal: who, address: ADDRESS, limits: [] })).denial,
    ).toBeDefined()
    await redis.direct.del(revokedTokenKey(DEFAULT_KEYS, who.tokenIdHash ?? ''))
    const request = { principal: who, address: ADDRESS, limits: [limit] }
    expect((await here.admit(request)).denial?.code).toBe('token_revoked')
    nowMs += 10_000
    const verdict = await here.admit(request)
    expect(verdict.denial).toBeUndefined()
    expect(verdict.limits[0]?.remaining).toBe(2)
    // From here on the token behaves like any other: one call.
    expect(await calls(() => here.admit(request))).toBe(1)
  })

  test('never spends the budget of a token before the cutoff, although each request costs a call', async () => {
    const who = principal()
    const here = isolate()
    await revocations().revokeBefore({ ...cutOffOf(who), atSeconds: nowSeconds(), ttlSeconds: 600 })
    await here.admit({ principal: who, address: ADDRESS, limits: [] })
    const request = { principal: who, address: ADDRESS, limits: [limitOf()] }
    for (let round = 0; round < 3; round++) {
      expect(await calls(() => here.admit(request))).toBe(1)
      expect((await here.admit(request)).denial).toEqual({ code: 'token_revoked', by: 'subject' })
    }
    expect(await counted()).toBe(0)
  })

  test('admits a token on the next request after its cutoff is deleted, in every isolate', async () => {
    const who = principal()
    const request = { principal: who, address: ADDRESS, limits: [limitOf({ limit: 9 })] }
    const [here, there] = [isolate(), isolate()]
    await revocations().revokeBefore({ ...cutOffOf(who), atSeconds: nowSeconds(), ttlSeconds: 600 })
    for (const gateway of [here, there])
      expect((await gateway.admit(request)).denial?.code).toBe('token_revoked')
    await revocations().liftRevokedBefore(cutOffOf(who))
    for (const gateway of [here, there])
      expect((await gateway.admit(request)).denial).toBeUndefined()
  })

  test('sees a new revocation of a restored token at once', async () => {
    const who = principal()
    const request = { principal: who, address: ADDRESS, limits: [] }
    const here = isolate()
    await revoke(who)
    await here.admit(request)
    await redis.direct.del(revokedTokenKey(DEFAULT_KEYS, who.tokenIdHash ?? ''))
    nowMs += 10_000
    expect((await here.admit(request)).denial).toBeUndefined()
    await revoke(who)
    expect((await here.admit(request)).denial?.code).toBe('token_revoked')
  })
})
