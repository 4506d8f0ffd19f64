/** Plans and quotas through the whole pipeline, in memory. */
import { definePolicy } from 'portcullis'
import { plans, quotas } from 'portcullis/plans'
import { policyTester } from 'portcullis/testing'
import { describe, expect, test } from 'vitest'

const policy = definePolicy({
  roles: { reader: ['notes:read'] },
  limits: {
    plan: plans({
      plans: { free: '2/min', pro: { rate: '10/min', perMonth: 4, concurrency: 2 } },
      default: 'free',
    }),
    fair: quotas({ perDay: 3, by: 'subject' }),
    anyone: quotas({ perDay: 2, by: 'address' }),
  },
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['plan'] },
    { method: 'GET', path: '/fair', permission: 'notes:read', limits: ['fair'] },
    { method: 'GET', path: '/public', anonymous: true, limits: ['anyone'] },
  ],
})
const START_MS = Date.UTC(2026, 0, 30, 12)
const alice = { sub: 'alice', roles: ['reader'], client: 'app', tenant: 'acme' }

describe('plans and quotas', () => {
  test('a plan changes with the next request', async () => {
    const tester = policyTester(policy, { startMs: START_MS })
    const statusOf = async () => (await tester.request('GET /notes', { as: alice })).status
    expect([await statusOf(), await statusOf()]).toEqual([200, 200])
    await tester.assignPlan({ client: 'app', plan: 'pro' })
    expect([await statusOf(), await statusOf()]).toEqual([200, 200])
  })

  test('an API key has its own plan and its own count', async () => {
    const tester = policyTester(policy, { startMs: START_MS })
    const [free, pro] = [
      await tester.apiKey({ sub: 'robot', roles: ['reader'] }),
      await tester.apiKey({ sub: 'robot', roles: ['reader'], plan: 'pro' }),
    ]
    const statusOf = async (token: string) => (await tester.request('GET /notes', { token })).status
    expect([await statusOf(free), await statusOf(free), await statusOf(free)]).toEqual([
      200, 200, 429,
    ])
    expect([
      await statusOf(pro),
      await statusOf(pro),
      await statusOf(pro),
      await statusOf(pro),
    ]).toEqual([200, 200, 200, 200])
    const refused = await tester.request('GET /notes', { token: pro })
    expect(refused).toMatchObject({
      status: 429,
      code: 'rate_limited',
      detail: expect.stringMatching(/exhausted until \d{4}-\d\d-\d\dT00:00:00Z\.$/),
    })
    tester.advanceSeconds(1.5 * 86_400)
    expect(await statusOf(pro)).toBe(200)
  })

  test('a quota without plans counts each caller until midnight', async () => {
    const tester = policyTester(policy, { startMs: START_MS })
    const statusOf = async (sub: string) =>
      (await tester.request('GET /fair', { as: { ...alice, sub } })).status
    const many = [
      await statusOf('a'),
      await statusOf('a'),
      await statusOf('a'),
      await statusOf('a'),
    ]
    expect(many).toEqual([200, 200, 200, 429])
    expect(await statusOf('b')).toBe(200)
    tester.advanceSeconds(43_200)
    expect(await statusOf('a')).toBe(200)
  })

  test('a quota by address counts anonymous callers', async () => {
    const tester = policyTester(policy)
    const statuses = [0, 1, 2].map(async () => (await tester.request('GET /public')).status)
    expect((await Promise.all(statuses)).sort()).toEqual([200, 200, 429])
  })

  test('only as many requests as the plan allows are at the origin at once', async () => {
    let [now, most] = [0, 0]
    const gates: (() => void)[] = []
    const tester = policyTester(policy, {
      startMs: START_MS,
      async origin() {
        now += 1
        most = Math.max(most, now)
        await new Promise<void>((resolve) => gates.push(resolve))
        now -= 1
        return new Response('done')
      },
    })
    const token = await tester.apiKey({ sub: 'robot', roles: ['reader'], plan: 'pro' })
    const all = [0, 1, 2, 3].map(() => tester.request('GET /notes', { token }))
    while (gates.length < 2) await new Promise((resolve) => setImmediate(resolve))
    const refused = await Promise.race(all)
    expect(refused).toMatchObject({ status: 429, code: 'rate_limited' })
    for (const open of gates.splice(0)) open()
    const statuses = (await Promise.all(all)).map(({ status }) => status).sort()
    expect(statuses).toEqual([200, 200, 429, 429])
    expect(most).toBe(2)
    const again = tester.request('GET /notes', { token })
    while (gates.length < 1) await new Promise((resolve) => setImmediate(resolve))
    gates[0]?.()
    expect((await again).status).toBe(200)
  })
})

describe('mistakes', () => {
  const defined = (limits: Parameters<typeof definePolicy>[0]['limits']) =>
    definePolicy({
      roles: {},
      limits,
      routes: [{ method: 'GET', path: '/a', anonymous: true, limits: [] }],
    })
  test.each([
    [
      () => defined({ p: plans({ plans: { a: {} }, default: 'a' }) }),
      'limits.p.plans.a: must have rate, perDay, perMonth or concurrency',
    ],
    [
      () => defined({ p: plans({ plans: { a: '1/min' }, default: 'b' as 'a' }) }),
      'limits.p.default: unknown plan b; the plans are a',
    ],
    [
      () => defined({ p: plans({ plans: { a: { rate: ['1/min', '2/60s'] } }, default: 'a' }) }),
      'limits.p.plans.a.rate: must not contain two rates with the same window',
    ],
    [() => defined({ p: quotas({ perDay: 0 }) }), 'limits.p.perDay'],
    [
      () => defined({ p: quotas({ perDay: 1, cost: 2 }) }),
      'limits.p.cost: must not exceed the 1 units',
    ],
    [
      () => defined({ p: quotas({ perDay: 1 }), 'p-day': '1/min' }),
      'limits["p-day"]: is also a limit of p; rename one of them',
    ],
  ])('%# is refused with its place', (define, message) => {
    expect(define).toThrow(message)
  })

  test('an anonymous route cannot use a plan of keys', () => {
    expect(() =>
      definePolicy({
        roles: {},
        limits: { p: quotas({ perDay: 1 }) },
        routes: [{ method: 'GET', path: '/a', anonymous: true, limits: ['p'] }],
      }),
    ).toThrow('GET /a: anonymous callers have no key to limit p by')
  })
})
