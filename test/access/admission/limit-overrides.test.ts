import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { limitKeyOf } from '../../../src/access/admission/limit-key.ts'
import {
  createLimitControls,
  overrideKey,
} from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { Unavailable } from '../../../src/errors.ts'
import { admit } from '../../../src/middleware/admit.ts'
import type { GatewayVariables } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import type { LimitBy } from '../../../src/policy/definition.ts'
import type { PolicyLimit } from '../../../src/policy/policy.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, GATEWAY, IDP, principal } from './callers.ts'

const rule = (by: LimitBy, claims: Partial<PolicyLimit> = {}): PolicyLimit => ({
  name: 'standard',
  limit: 2,
  windowSeconds: 86_400,
  by,
  onUnavailable: 'deny',
  ...claims,
})

describe.each(['auto', 'embedded'] as const)('limits that an operator overrides (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const controls = () => createLimitControls(rest())

  /**
   * Creates the app of one isolate with the clock `now`. Returns a function that sends requests and
   * returns statuses.
   */
  function isolate(who: Principal | null, limit: PolicyLimit, now: () => number = Date.now) {
    let reached = 0
    const admission = createAdmission({ store: createRedisAdmissionStore(rest()), now })
    const app = new Hono<{ Variables: GatewayVariables }>()
    app.onError(problemHandler())
    app.use(async (c, next) => {
      c.set('portcullis.principal', who)
      c.set('portcullis.clientAddress', ADDRESS)
      await next()
    })
    app.get('/', admit({ admission, limits: [limit] }), (c) => {
      reached += 1
      return c.text('ok')
    })
    return { send: async () => app.request('/'), reached: () => reached }
  }

  test.each([
    ['subject', { issuer: IDP, value: 'alice' }],
    ['client', { issuer: GATEWAY, value: 'app' }],
    ['tenant', { issuer: IDP, value: 'a:c*m e' }],
    ['address', { issuer: '', value: ADDRESS }],
    [
      ({ principal: who }: { principal: Principal | null }) => `${who?.subject}!`,
      { issuer: '', value: 'alice!' },
    ],
  ] as const)(
    'an override of one window by %s takes effect on the next request, and the headers show it',
    async (by, owner) => {
      const who = principal({ tokenIssuer: GATEWAY, subject: 'alice', tenant: 'a:c*m e' })
      const limit = rule(by as LimitBy)
      const gateway = isolate(who, limit)
      const key = await limitKeyOf(limit, owner)
      await controls().override({ key, requests: 5 })
      const response = await gateway.send()
      expect(response.headers.get('ratelimit')).toMatch('"standard";r=4;t=')
      expect(response.headers.get('ratelimit-policy')).toBe('"standard";q=5;w=86400')
      const statuses = []
      for (let count = 0; count < 5; count++) statuses.push((await gateway.send()).status)
      expect(statuses).toEqual([200, 200, 200, 200, 429])
      expect(gateway.reached()).toBe(5)
    },
  )

  test('of an override in every tenant and one within a tenant, the smaller one applies [S88]', async () => {
    const owner = { issuer: IDP, value: 'alice' }
    const everywhere = await limitKeyOf(rule('subject'), owner)
    const within = await limitKeyOf(rule('subject'), { ...owner, tenant: 'acme' })
    const limitFor = async (tenant: string | undefined) => {
      const response = await isolate(
        principal({ subject: 'alice', tenant }),
        rule('subject', { limit: 20 }),
      ).send()
      return /q=(\d+)/.exec(response.headers.get('ratelimit-policy') ?? '')?.[1]
    }
    const limits = async () => [
      await limitFor('acme'),
      await limitFor('globex'),
      await limitFor(undefined),
    ]
    await controls().override({ key: within, requests: 9 })
    expect(await limits()).toEqual(['9', '20', '20'])
    await controls().override({ key: everywhere, requests: 15 })
    expect(await limits()).toEqual(['9', '15', '15'])
    await controls().override({ key: within, requests: 50 })
    expect(await limits()).toEqual(['15', '15', '15'])
    await controls().lift(everywhere)
    expect(await limits()).toEqual(['50', '20', '20'])
  })

  test('an override affects no other window', async () => {
    const limit = rule('subject')
    await controls().override({
      key: await limitKeyOf(limit, { issuer: IDP, value: 'alice' }),
      requests: 9,
    })
    for (const claims of [
      { subject: 'alice2' },
      { subject: 'alice', issuer: GATEWAY },
      { subject: 'Alice' },
    ]) {
      const response = await isolate(principal(claims), limit).send()
      expect(response.headers.get('ratelimit')).toMatch('"standard";r=1;t=')
      expect(response.headers.get('ratelimit-policy')).toBe('"standard";q=2;w=86400')
    }
  })

  test('an override ends when it expires or is deleted', async () => {
    const key = await limitKeyOf(rule('subject'), { issuer: IDP, value: 'alice' })
    await controls().override({ key, requests: 5, ttlSeconds: 60 })
    expect(await redis.direct.ttl(overrideKey(DEFAULT_KEYS, key))).toBeGreaterThan(0)
    await controls().override({ key, requests: 6 })
    expect(await redis.direct.ttl(overrideKey(DEFAULT_KEYS, key))).toBe(-1)
    await controls().lift(key)
    const response = await isolate(principal({ subject: 'alice' }), rule('subject')).send()
    expect(response.headers.get('ratelimit')).toMatch('"standard";r=1;t=')
  })

  test('a lower override refuses requests too', async () => {
    const who = principal()
    const gateway = isolate(who, rule('subject'))
    await gateway.send()
    const key = await limitKeyOf(rule('subject'), {
      issuer: IDP,
      value: who.subject,
      tenant: who.tenant,
    })
    await controls().override({ key, requests: 1 })
    expect((await gateway.send()).status).toBe(429)
    expect(gateway.reached()).toBe(1)
  })

  test('a reset window starts anew, within five seconds in isolates that have refused', async () => {
    const who = principal()
    const key = await limitKeyOf(rule('subject'), {
      issuer: IDP,
      value: who.subject,
      tenant: who.tenant,
    })
    let nowMs = Date.now()
    const here = isolate(who, rule('subject'), () => nowMs)
    for (const status of [200, 200, 429]) expect((await here.send()).status).toBe(status)
    await controls().reset({ key, windowSeconds: 86_400 })
    // This isolate uses its cached refusal without a call; another isolate does not.
    nowMs += 4_999
    const before = redis.calls()
    expect((await here.send()).status).toBe(429)
    expect(redis.calls() - before).toBe(0)
    expect((await isolate(who, rule('subject')).send()).status).toBe(200)
    nowMs += 1
    expect((await here.send()).status).toBe(200)
    expect(here.reached()).toBe(3)
  })

  test('an override that is not a number is an outage of that limit [R06]', async () => {
    const who = principal()
    const key = await limitKeyOf(rule('subject'), {
      issuer: IDP,
      value: who.subject,
      tenant: who.tenant,
    })
    await redis.direct.set(overrideKey(DEFAULT_KEYS, key), 'many', 'EX', 60)
    expect((await isolate(who, rule('subject')).send()).status).toBe(503)
    const open = rule('subject', { onUnavailable: 'allow' })
    expect((await isolate(who, open).send()).status).toBe(200)
  })

  test('an override that cannot be stored is reported as an error', async () => {
    const key = await limitKeyOf(rule('subject'), { issuer: IDP, value: 'alice' })
    for (const requests of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      await expect(controls().override({ key, requests })).rejects.toBeInstanceOf(RangeError)
    await expect(controls().override({ key, requests: 1, ttlSeconds: 0 })).rejects.toBeInstanceOf(
      RangeError,
    )
    expect(await redis.direct.keys('*')).toEqual([])
    const away = createLimitControls(
      createRedisRest({ url: 'http://127.0.0.1:1', token: 'x', timeoutMs: 200 }),
    )
    await expect(away.override({ key, requests: 1 })).rejects.toBeInstanceOf(Unavailable)
    await expect(away.lift(key)).rejects.toBeInstanceOf(Unavailable)
    await expect(away.reset({ key, windowSeconds: 60 })).rejects.toBeInstanceOf(Unavailable)
  })
})

test('names of windows escape separators, and never collide [S32]', async () => {
  const owners = ['a', 'a:b', 'a%3Ab', '*', '', ':', 'x'.repeat(500)]
  const keys = new Set<string>()
  for (const issuer of owners)
    for (const value of owners) keys.add(await limitKeyOf(rule('subject'), { issuer, value }))
  expect(keys.size).toBe(owners.length ** 2)
  for (const key of keys) expect(key.split(':').length, key).toBe(4)
})
