/** `portcullis()` from `portcullis/hono`: every guard, and that refused requests reach no handler. */
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { addressBanKey } from '../../src/access/abuse/ban.ts'
import { Denied, problemHandler } from '../../src/hono/index.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { guardWith, json, type Surroundings, surroundings } from './app.ts'

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

const note = z.strictObject({ text: z.string().min(1).max(10) })

/** An app with a route of each kind. `reached` has the handlers that ran. */
function notes(more: Parameters<typeof guardWith>[1] = {}) {
  const guard = guardWith(given, more)
  const reached: string[] = []
  const app = new Hono().use(guard)
  app.get('/notes/:id?', guard.require('notes:read'), (c) => {
    reached.push('read')
    return c.json(c.var.caller.subject)
  })
  app.post('/notes', guard.require('notes:write').body(note).maxBodyBytes(100), (c) => {
    reached.push('write')
    return c.json(c.req.valid('json'), 201)
  })
  app.get('/mine', (c) => {
    reached.push('mine')
    return c.json(c.var.caller?.subject ?? null)
  })
  app.get('/about', guard.public(), (c) => {
    reached.push('about')
    return c.json(c.var.caller?.subject ?? null)
  })
  return { app, guard, reached }
}

async function problemOf(response: Response) {
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  const { code } = (await response.json()) as { code: string }
  return [response.status, code]
}

describe('a request that is refused reaches no handler:', () => {
  const cases: readonly [string, string, () => Promise<RequestInit>, number, string][] = [
    ['no token', '/notes', async () => ({}), 401, 'missing_token'],
    [
      'a token that is not valid',
      '/notes',
      async () => ({ headers: { Authorization: 'Bearer a.b.c' } }),
      401,
      'invalid_token',
    ],
    [
      'a token that is not valid, on a public route',
      '/about',
      async () => ({ headers: { Authorization: 'Bearer a.b.c' } }),
      401,
      'invalid_token',
    ],
    ['no token on a route without a declaration', '/mine', async () => ({}), 401, 'missing_token'],
    ['no token on an unknown path', '/none', async () => ({}), 401, 'missing_token'],
    [
      'no permission',
      '/notes',
      async () => json('{"text":"a"}', await given.bearer()),
      403,
      'insufficient_permission',
    ],
    [
      'a body that does not match',
      '/notes',
      async () => json('{"text":""}', await given.bearer(['writer'])),
      422,
      'invalid_input',
    ],
    [
      'a duplicate name in the body',
      '/notes',
      async () => json('{"text":"a","text":"b"}', await given.bearer(['writer'])),
      400,
      'malformed_request',
    ],
    [
      'a body that is too large',
      '/notes',
      async () => json(`{"text":"${'a'.repeat(200)}"}`, await given.bearer(['writer'])),
      413,
      'payload_too_large',
    ],
    [
      'a body of another type',
      '/notes',
      async () => json('a', { ...(await given.bearer(['writer'])), 'Content-Type': 'text/plain' }),
      415,
      'unsupported_media_type',
    ],
    [
      'an ambiguous path',
      '/notes/a%2fb',
      async () => ({ headers: await given.bearer() }),
      400,
      'ambiguous_path',
    ],
  ]
  test.each(cases)('%s', async (_, path, init, status, code) => {
    const { app, reached } = notes()
    const response = await app.request(path, await init())
    expect(await problemOf(response)).toEqual([status, code])
    expect(response.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/)
    expect(reached).toEqual([])
    expect(given.events).toMatchObject([{ status, decision: 'deny' }])
  })

  test('a caller over the limit, with Retry-After and RateLimit', async () => {
    const { app, reached } = notes({ limits: { standard: '2/h' } })
    const headers = await given.bearer()
    await app.request('/notes', { headers })
    const second = await app.request('/mine', { headers })
    expect(second.headers.get('ratelimit-policy')).toBe('"standard";q=2;w=3600')
    const third = await app.request('/notes', { headers })
    expect(await problemOf(third)).toEqual([429, 'rate_limited'])
    expect(third.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(third.headers.get('ratelimit')).toMatch(/^"standard";r=0;t=\d+$/)
    expect(reached).toEqual(['read', 'mine'])
  })

  test('a banned address', async () => {
    const { app, reached } = notes({ clientAddress: () => '192.0.2.1' })
    await given.redis.direct.set(await addressBanKey(DEFAULT_KEYS, '192.0.2.1'), '9999999999')
    const response = await app.request('/notes', { headers: await given.bearer() })
    expect(await problemOf(response)).toEqual([403, 'banned'])
    expect(reached).toEqual([])
  })

  test('bad credentials of one address are throttled', async () => {
    const { app } = notes({
      clientAddress: () => '192.0.2.1',
      abuse: { authenticationFailures: { limit: 1 } },
    })
    const headers = { Authorization: 'Bearer a.b.c' }
    const statuses = []
    for (let sent = 0; sent < 2; sent++)
      statuses.push((await app.request('/notes', { headers })).status)
    expect(statuses).toEqual([401, 429])
  })

  test('any caller if Redis does not answer', async () => {
    const { app, reached } = notes()
    given.redis.setAnswering(false)
    const response = await app.request('/notes', { headers: await given.bearer() })
    expect(await problemOf(response)).toEqual([503, 'dependency_unavailable'])
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(reached).toEqual([])
  })

  test.each(['own', 'by jti', 'by subject'] as const)('a revoked token (%s)', async (kind) => {
    const { app, guard, reached } = notes()
    app.post('/revoke', guard.authenticated(), async (c) => {
      const { tokenId: jti = '', subject } = c.var.caller
      if (kind === 'own') await guard.revoke(c)
      else await guard.revoke(c, kind === 'by jti' ? { jti } : { subject })
      return c.body(null, 204)
    })
    const headers = await given.bearer()
    expect((await app.request('/notes', { headers })).status).toBe(200)
    expect((await app.request('/revoke', { method: 'POST', headers })).status).toBe(204)
    const response = await app.request('/notes', { headers })
    expect(await problemOf(response)).toEqual([401, 'invalid_token'])
    expect(given.events.at(-1)?.reason).toMatch(/^token_revoked:/)
    expect(reached).toEqual(['read'])
    const other = await given.bearer(['reader'], { claims: { sub: 'adam' } })
    expect((await app.request('/notes', { headers: other })).status).toBe(200)
  })
})

describe('a request that is allowed', () => {
  test('gets the handler of its route, with the caller', async () => {
    const { app } = notes()
    const headers = await given.bearer(['writer'])
    for (const path of ['/notes', '/notes/1', '/mine', '/about']) {
      const response = await app.request(path, { headers })
      expect([response.status, await response.json()]).toEqual([200, 'eve'])
    }
    const written = await app.request('/notes', json('{"text":"a"}', headers))
    expect([written.status, await written.json()]).toEqual([201, { text: 'a' }])
  })

  test('is one round trip to Redis, with limits of the app and of the route', async () => {
    const { app, guard } = notes({ limits: { standard: '100/min', expensive: '10/min' } })
    const body = guard.require('notes:write').limit('expensive').body(note)
    app.post('/search', body, (c) => c.json(c.req.valid('json')))
    const headers = await given.bearer(['writer'])
    await app.request('/notes', { headers })
    for (const [path, init] of [
      ['/notes', { headers }],
      ['/mine', { headers }],
      ['/search', json('{"text":"a"}', headers)],
    ] as const) {
      const before = given.redis.calls()
      const response = await app.request(path, init)
      expect(response.status).toBe(200)
      expect(given.redis.calls() - before, path).toBe(1)
      const limits = path === '/search' ? ['standard', 'expensive'] : ['standard']
      const named = given.events.at(-1)?.limits.map(({ name }) => name)
      expect(named).toEqual(limits)
    }
  })

  test('an anonymous request to a public route counts by address', async () => {
    const { app } = notes({ limits: { standard: '1/h' }, clientAddress: () => '192.0.2.1' })
    const before = given.redis.calls()
    expect(await (await app.request('/about')).json()).toBeNull()
    expect(given.redis.calls() - before).toBe(1)
    expect((await app.request('/about')).status).toBe(429)
    expect((await app.request('/about', { headers: await given.bearer() })).status).toBe(200)
  })

  test('is an event with the route, the caller and the durations of the stages', async () => {
    const { app } = notes({ limits: { standard: '100/min' } })
    await app.request('/notes/7', { headers: await given.bearer() })
    expect(given.events).toMatchObject([
      {
        method: 'GET',
        route: '/notes/:id?',
        decision: 'allow',
        reason: 'ok',
        status: 200,
        actor: { subject: 'eve' },
        limits: [{ name: 'standard', limit: 100, remaining: 99 }],
      },
    ])
    expect(Object.keys(given.events[0]?.durationsMs ?? {})).toEqual([
      'shedLoad',
      'canonicalPath',
      'clientAddress',
      'limitBody',
      'banOffenders',
      'throttle',
      'authenticate',
      'admit',
      'handler',
      'authorize',
      'validate',
      'readmit',
    ])
  })

  test('HEAD is like GET, and an unknown path is 404 for an identified caller', async () => {
    const { app, reached } = notes()
    const headers = await given.bearer()
    const head = await app.request('/notes', { method: 'HEAD', headers })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect((await app.request('/notes', { method: 'HEAD' })).status).toBe(401)
    expect(reached).toEqual(['read'])
    const unknown = await app.request('/none', { headers })
    expect(unknown.status).toBe(404)
    expect(given.events.at(-1)).toMatchObject({ route: null, status: 404, decision: 'allow' })
  })
})

describe('refusals and the error handler of the app:', () => {
  const routes = ['/mine', '/notes'] as const

  test('it receives each refusal, and its response has the headers of the refusal', async () => {
    const { app } = notes({ limits: { standard: '100/min' } })
    const seen: unknown[] = []
    app.onError((error, c) => {
      seen.push(error)
      return c.json({ own: true }, error instanceof HTTPException ? error.status : 500)
    })
    for (const path of routes) {
      const response = await app.request(path)
      expect([response.status, await response.json()]).toEqual([401, { own: true }])
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer /)
    }
    const refused = await app.request('/notes', json('{"text":"a"}', await given.bearer()))
    expect([refused.status, await refused.json()]).toEqual([403, { own: true }])
    expect(refused.headers.get('ratelimit-policy')).toBe('"standard";q=100;w=60')
    expect(refused.headers.get('x-request-id')).toBe(given.events.at(-1)?.requestId)
    expect(seen.map((error) => error instanceof Denied)).toEqual([true, true, true])
  })

  test('a handler for HTTPException alone answers with the problem document', async () => {
    const { app } = notes()
    app.onError((error) =>
      error instanceof HTTPException ? error.getResponse() : new Response(null, { status: 500 }),
    )
    for (const path of routes)
      expect(await problemOf(await app.request(path))).toEqual([401, 'missing_token'])
  })

  test('problemHandler adds the request id to the document', async () => {
    const { app } = notes()
    app.onError(problemHandler())
    for (const path of routes) {
      const response = await app.request(path)
      const { requestId } = (await response.json()) as { requestId: string }
      expect(requestId).toBe(response.headers.get('x-request-id'))
    }
  })

  test('an HTTPException of the options is the refusal of the guard, and reaches no handler', async () => {
    const limit = { limit: 9, windowSeconds: 60, onUnavailable: 'deny' } as const
    const by = () => {
      throw new HTTPException(403)
    }
    const { app, reached } = notes({ limits: { standard: { ...limit, by } } })
    expect((await app.request('/notes', { headers: await given.bearer() })).status).toBe(403)
    expect(reached).toEqual([])
    expect(given.events).toMatchObject([{ decision: 'deny', reason: 'http_exception' }])
  })

  test('an error of a handler is its own, and the request was allowed or failed', async () => {
    const { app, guard } = notes()
    app.get('/gone', guard.require('notes:read'), () => {
      throw new HTTPException(410, { message: 'gone' })
    })
    const response = await app.request('/gone', { headers: await given.bearer() })
    expect([response.status, await response.text()]).toEqual([410, 'gone'])
    expect(given.events).toMatchObject([{ decision: 'allow', reason: 'ok', status: 410 }])
  })
})
