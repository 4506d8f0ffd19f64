/** One table of requests over the guard of each framework: allowed, or refused before any handler. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { json, ROLES, type Surroundings, surroundings } from '../hono/app.ts'
import { FRAMEWORKS, type GuardedApp, type Options } from './apps.ts'

let given: Surroundings
beforeAll(async () => {
  given = await surroundings()
})
afterAll(() => given?.redis.close())
beforeEach(async () => {
  given.redis.setAnswering(true)
  await given.redis.direct.flushall()
  given.events.length = 0
})

interface Refused {
  readonly name: string
  readonly path?: string
  readonly init?: () => Promise<RequestInit>
  readonly status: number
  readonly code: string
}

const REFUSED: readonly Refused[] = [
  { name: 'no token', status: 401, code: 'missing_token' },
  {
    name: 'no token on a route without a declaration',
    path: '/mine',
    status: 401,
    code: 'missing_token',
  },
  { name: 'no token on an unknown path', path: '/none', status: 401, code: 'missing_token' },
  {
    name: 'a token that is no token',
    init: async () => ({ headers: { Authorization: 'Bearer a.b.c' } }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a token that is no token, on a public route',
    path: '/about',
    init: async () => ({ headers: { Authorization: 'Bearer a.b.c' } }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'an expired token',
    init: async () => ({ headers: await given.bearer(['reader'], { claims: { exp: 1_000 } }) }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a token for another audience',
    init: async () => ({ headers: await given.bearer(['reader'], { claims: { aud: 'other' } }) }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a token of another issuer',
    init: async () => ({
      headers: await given.bearer(['reader'], { claims: { iss: 'https://other.test' } }),
    }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'no permission',
    init: async () => json('{"text":"a"}', await given.bearer()),
    status: 403,
    code: 'insufficient_permission',
  },
  {
    name: 'a body that does not match',
    init: async () => json('{"text":""}', await given.bearer(['writer'])),
    status: 422,
    code: 'invalid_input',
  },
  {
    name: 'a query that does not match',
    path: '/notes?limit=101',
    init: async () => ({ headers: await given.bearer() }),
    status: 422,
    code: 'invalid_input',
  },
  {
    name: 'a body that is too large',
    init: async () => json(`{"text":"${'a'.repeat(200)}"}`, await given.bearer(['writer'])),
    status: 413,
    code: 'payload_too_large',
  },
  {
    name: 'a body of another type',
    init: async () =>
      json('a', { ...(await given.bearer(['writer'])), 'Content-Type': 'text/plain' }),
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    name: 'an ambiguous path',
    path: '/notes/a%2fb',
    init: async () => ({ headers: await given.bearer() }),
    status: 400,
    code: 'ambiguous_path',
  },
]

describe.each(FRAMEWORKS)('%s', (_, start) => {
  let app: GuardedApp
  const use = async (more: Partial<Options> = {}) => {
    app = await start({
      ...given.options,
      roles: ROLES,
      limits: { expensive: '100/min' },
      ...more,
    } as Options)
    return app
  }
  afterEach(() => app?.close())

  async function problemOf(response: Response) {
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/)
    const { code } = (await response.json()) as { code: string }
    return { status: response.status, code }
  }

  test.each(REFUSED)(
    '$name is $status, and reaches no handler',
    async ({ path = '/notes', init, status, code }) => {
      const { request, reached } = await use()
      const response = await request(path, await init?.())
      expect(await problemOf(response)).toEqual({ status, code })
      if (status === 401) expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/)
      expect(reached).toEqual([])
      await expect.poll(() => given.events).toMatchObject([{ status, decision: 'deny' }])
    },
  )

  test('a caller over the limit is 429 with Retry-After and RateLimit', async () => {
    const { request, reached } = await use({ limits: { standard: '2/h', expensive: '9/h' } })
    const headers = await given.bearer()
    const first = await request('/notes', { headers })
    expect(first.headers.get('ratelimit-policy')).toBe('"standard";q=2;w=3600')
    await request('/mine', { headers })
    const third = await request('/notes', { headers })
    expect(await problemOf(third)).toEqual({ status: 429, code: 'rate_limited' })
    expect(third.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(third.headers.get('ratelimit')).toMatch(/^"standard";r=0;t=\d+$/)
    expect(reached).toEqual(['read', 'mine'])
  })

  test('a caller is 503 if Redis does not answer, and reaches no handler', async () => {
    const { request, reached } = await use()
    given.redis.setAnswering(false)
    const response = await request('/notes', { headers: await given.bearer() })
    expect(await problemOf(response)).toEqual({ status: 503, code: 'dependency_unavailable' })
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(reached).toEqual([])
  })

  test('a token that the app has revoked is 401, and another one of the caller is not', async () => {
    const { request, reached } = await use()
    const headers = await given.bearer()
    expect((await request('/notes', { headers })).status).toBe(200)
    expect((await request('/logout', { method: 'POST', headers })).status).toBe(204)
    const refused = await request('/notes', { headers })
    expect(await problemOf(refused)).toEqual({ status: 401, code: 'invalid_token' })
    expect((await request('/notes', { headers: await given.bearer() })).status).toBe(200)
    expect(reached).toEqual(['read', 'read'])
  })

  test('allowed requests reach their handlers with the caller and the checked input', async () => {
    const { request } = await use()
    const headers = await given.bearer(['writer'])
    const read = await request('/notes', { headers })
    expect([read.status, await read.json()]).toEqual([200, { of: 'eve', limit: 20 }])
    expect(read.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/)
    const one = await request('/notes/7', { headers })
    expect([one.status, await one.json()]).toEqual([200, { id: 7 }])
    const written = await request('/notes', json('{"text":"a"}', headers))
    expect([written.status, await written.json()]).toEqual([201, { text: 'a' }])
    expect((await request('/notes', { method: 'HEAD', headers })).status).toBe(200)
    await expect
      .poll(() => given.events.map(({ decision, actor }) => [decision, actor.subject]))
      .toEqual(Array.from({ length: 4 }, () => ['allow', 'eve']))
  })

  test('a public route is open, and names a caller who is known', async ({ skip }) => {
    const { request } = await use()
    if (_ === 'portcullis/express in Fastify') skip()
    const anonymous = await request('/about')
    expect([anonymous.status, await anonymous.json()]).toEqual([200, null])
    const known = await request('/about', { headers: await given.bearer() })
    expect([known.status, await known.json()]).toEqual([200, 'eve'])
  })

  test('a request is one round trip to Redis, with a limit of its route too', async () => {
    const { request } = await use({ limits: { standard: '100/min', expensive: '10/min' } })
    const headers = await given.bearer()
    await request('/notes', { headers })
    for (const path of ['/notes', '/mine', '/search']) {
      const before = given.redis.calls()
      const response = await request(path, { headers })
      expect(response.status).toBe(200)
      // The middlewares of Fastify run before it has found the route.
      const isLate = _ === 'portcullis/express in Fastify' && path === '/search'
      expect(given.redis.calls() - before, path).toBe(isLate ? 2 : 1)
    }
  })
})
