/** npm can install two copies of this package: one makes the policy, and the other serves it. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { navigate } from '../harness/navigation.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'

type Errors = typeof import('../../src/errors.ts')

const ISSUER = 'https://login.example.com'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis?.close())

test('each copy recognizes the errors of the other, and only those', async () => {
  const own = await import('../../src/errors.ts')
  vi.resetModules()
  const other: Errors = await import('../../src/errors.ts')
  expect(other.Denied).not.toBe(own.Denied)
  const denied = new other.Denied({ code: 'missing_token' })
  const unavailable = new other.Unavailable('redis', 'timeout')
  const misconfigured = new other.Misconfigured('The policy', [])
  const kinds = [own.ProblemError, own.Denied, own.Unavailable, own.OutOfOrder, own.Misconfigured]
  const recognized = [denied, unavailable, misconfigured].map((error) =>
    kinds.filter((kind) => error instanceof kind).map(({ name }) => name),
  )
  expect(recognized).toEqual([
    ['ProblemError', 'Denied'],
    ['ProblemError', 'Unavailable'],
    ['Misconfigured'],
  ])
  expect(own.carriesResponse(denied)).toBe(false)
  for (const value of [null, undefined, 'Denied', { name: 'Denied' }, new Error('Denied')])
    expect(value instanceof own.Denied).toBe(false)
  class Special extends own.Denied {}
  expect(denied instanceof Special).toBe(false)
  expect(new Special({ code: 'missing_token' }) instanceof Special).toBe(true)
})

test('a gateway of one copy has the answers of features of the other', async () => {
  const { serve } = await import('../../src/runtimes/node/index.ts')
  vi.resetModules()
  const { definePolicy } = await import('../../src/index.ts')
  const { signIn } = await import('../../src/features/sign-in/index.ts')
  const server = await serve({
    policy: definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { standard: '100/min' },
      features: [signIn()],
      routes: [
        {
          method: 'GET',
          path: '/orders',
          permission: 'orders:read',
          limits: ['standard'],
          session: 'browser',
        },
      ],
    }),
    env: {
      ...redisVars(redis),
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: 'http://127.0.0.1:9',
      ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: 'orders' }]),
      ISSUER_CLIENTS: JSON.stringify([
        { issuer: ISSUER, id: 'gateway', secret: 'secret', signIn: { name: 'Example' } },
      ]),
    },
    port: 0,
  })
  try {
    expect(await navigate(`${server.url}/orders`)).toEqual({
      status: 303,
      location: expect.stringContaining('/oauth/sign-in'),
    })
  } finally {
    await server.close()
  }
})
