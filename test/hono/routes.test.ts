/** Which declaration applies to a request, and which routes are open. */
import { Hono, type MiddlewareHandler } from 'hono'
import { every } from 'hono/combine'
import { cors } from 'hono/cors'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { guardWith, json, type Surroundings, surroundings } from './app.ts'

let given: Surroundings
let headers: { Authorization: string }
beforeAll(async () => {
  given = await surroundings()
  headers = await given.bearer()
})
afterAll(() => given?.redis.close())
beforeEach(() => {
  given.events.length = 0
})

const limits = { standard: '1000/min', expensive: '100/min', other: '100/min' } as const

/** An app whose handlers report themselves. */
function appWith(
  routes: (app: Hono, guard: ReturnType<typeof guardWith>, handler: Handler) => void,
) {
  const guard = guardWith(given, { limits })
  const reached: string[] = []
  const app = new Hono()
  app.use(guard)
  routes(app, guard, (name) => async (c) => {
    reached.push(name)
    return c.text(name)
  })
  const statusOf = async (path: string, init?: RequestInit) =>
    (await app.request(path, init)).status
  return { app, reached, statusOf }
}

type Handler = (name: string) => MiddlewareHandler

const passing: MiddlewareHandler = (_, next) => next()

describe('a public route', () => {
  test('is open, also behind middlewares for its path and around it', async () => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app.use(passing)
      app.use('/docs/*', passing)
      app.use('/docs/intro', passing)
      app.get('/docs/intro', passing, guard.public(), handler('intro'))
    })
    expect(await statusOf('/docs/intro')).toBe(200)
    expect(await statusOf('/docs/other')).toBe(401)
    expect(reached).toEqual(['intro'])
  })

  test.each(['get', 'all'] as const)('opens no route that comes before it (%s)', async (method) => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app[method]('/me', handler('me'))
      app[method]('/trpc/*', handler('trpc'))
      app.get('*', guard.public(), handler('static'))
    })
    expect(await statusOf('/me')).toBe(401)
    expect(await statusOf('/trpc/users')).toBe(401)
    expect(await statusOf('/style.css')).toBe(200)
    expect(reached).toEqual(['static'])
    expect(await statusOf('/me', { headers })).toBe(200)
  })

  test('opens no route with a declaration of its own, before or after it', async () => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app.get('/before', guard.require('notes:read'), handler('before'))
      app.get('*', guard.public(), passing)
      app.get('/after', guard.require('notes:read').limit('expensive'), handler('after'))
      app.get('/mine', guard.authenticated(), handler('mine'))
    })
    for (const path of ['/before', '/after', '/mine']) {
      expect(await statusOf(path), path).toBe(401)
      expect(await statusOf(path, { headers }), path).toBe(200)
    }
    expect(reached).toEqual(['before', 'after', 'mine'])
  })

  test.each(['get', 'all', 'use'] as const)(
    'whose handler calls next() opens no route behind it (%s)',
    async (method) => {
      const { app, statusOf, reached } = appWith((app, guard, handler) => {
        if (method === 'use') app.use('*', guard.public(), passing)
        else app[method]('*', guard.public(), passing)
        app.get('/secret', handler('secret'))
        app.all('/any', handler('any'))
        app.get('/twice', guard.public(), passing)
        app.get('/twice/:id', handler('id'))
        app.get('/:name', passing, handler('name'))
        app.get('/open/:id', guard.public(), handler('open'))
        app.use('/around/*', passing)
        app.get('/around/open', guard.public(), handler('around'))
        app.get('/around/closed', handler('closed'))
        app.route('/nested', new Hono().get('/secret', handler('nested')))
        app.basePath('/base').get('/secret', handler('base'))
        app.mount('/mounted', () => {
          reached.push('mounted')
          return new Response('mounted')
        })
        app.options('/secret', handler('options'))
      })
      const closed = ['/secret', '/any', '/twice', '/twice/1', '/name', '/around/closed']
      for (const path of [...closed, '/nested/secret', '/base/secret', '/mounted/x'])
        for (const verb of ['GET', 'HEAD'])
          expect(await statusOf(path, { method: verb }), `${verb} ${path}`).toBe(401)
      expect(await statusOf('/secret', { method: 'OPTIONS' })).toBe(401)
      expect(reached).toEqual([])
      const response = await app.request('/secret')
      expect(await response.json()).toMatchObject({ code: 'missing_token' })
      expect(given.events.at(-1)).toMatchObject({ decision: 'deny', reason: 'missing_token' })

      for (const path of ['/open/1', '/around/open']) expect(await statusOf(path), path).toBe(200)
      expect(reached).toEqual(['open', 'around'])
      for (const path of ['/secret', '/nested/secret', '/base/secret', '/mounted/x'])
        expect(await statusOf(path, { headers }), path).toBe(200)
      // Only the app's own 404 is behind the last public route.
      expect(await statusOf('/a/b/c')).toBe(404)
    },
  )

  test('whose handler catches what next() throws opens no route either', async () => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app.get('*', guard.public(), async (c, next) => {
        await next().catch(() => {})
        return c.text('static')
      })
      app.get('/secret', handler('secret'))
    })
    expect(await statusOf('/secret')).toBe(200)
    expect(reached).toEqual([])
  })

  test('opens a whole path if it is declared for it', async () => {
    const { statusOf } = appWith((app, guard, handler) => {
      app.use('/docs/*', guard.public())
      app.get('/docs/intro', handler('intro'))
      app.get('/docs/secret', guard.require('notes:read'), handler('secret'))
      app.get('/other', handler('other'))
    })
    expect(await statusOf('/docs/intro')).toBe(200)
    expect(await statusOf('/docs/secret')).toBe(401)
    expect(await statusOf('/other')).toBe(401)
  })

  test('opens no other method of its path', async () => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app.get('/notes', guard.public(), handler('read'))
      app.post('/notes', handler('write'))
    })
    expect(await statusOf('/notes')).toBe(200)
    expect(await statusOf('/notes', { method: 'HEAD' })).toBe(200)
    for (const method of ['POST', 'OPTIONS', 'DELETE'])
      expect(await statusOf('/notes', { method }), method).toBe(401)
    expect(reached).toEqual(['read', 'read'])
  })
})

describe('declarations', () => {
  const limitsOf = () => given.events.at(-1)?.limits.map(({ name }) => name)

  test('of a path and of its routes all apply, in one round trip', async () => {
    const { statusOf } = appWith((app, guard, handler) => {
      app.use('/notes/*', guard.require('notes:read').limit('other'))
      app.get('/notes/one', guard.require('notes:read').limit('expensive'), handler('one'))
      app.get('/notes/two', guard.require('notes:write'), handler('two'))
      app.get('/notes/three', handler('three'))
    })
    await statusOf('/notes/one', { headers })
    const before = given.redis.calls()
    expect(await statusOf('/notes/one', { headers })).toBe(200)
    expect(given.redis.calls() - before).toBe(1)
    expect(limitsOf()).toEqual(['standard', 'other', 'expensive'])
    expect(await statusOf('/notes/two', { headers })).toBe(403)
    expect(await statusOf('/notes/three', { headers })).toBe(200)
    expect(limitsOf()).toEqual(['standard', 'other'])
  })

  test('of a route that does not answer do not count', async () => {
    const { statusOf } = appWith((app, guard, handler) => {
      app.get('/notes/one', guard.require('notes:read'), handler('one'))
      app.get('/notes/:id', guard.require('notes:write').limit('expensive'), handler('any'))
    })
    expect(await statusOf('/notes/one', { headers })).toBe(200)
    expect(limitsOf()).toEqual(['standard'])
  })

  test('behind a route that did not answer are checked and counted, too', async () => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app.get('/notes/*', guard.require('notes:read'), passing)
      app.get('/notes/one', guard.require('notes:read').limit('expensive'), handler('one'))
      app.get('/notes/two', guard.require('notes:write'), handler('two'))
    })
    expect(await statusOf('/notes/one', { headers })).toBe(200)
    expect(limitsOf()).toEqual(['expensive'])
    expect(await statusOf('/notes/two', { headers })).toBe(403)
    expect(reached).toEqual(['one'])
  })

  test('inside another middleware are checked', async () => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      app.get('/one', every(guard.require('notes:read')) as MiddlewareHandler, handler('one'))
      app.get('/two', every(guard.require('notes:write')) as MiddlewareHandler, handler('two'))
    })
    expect(await statusOf('/one')).toBe(401)
    expect(await statusOf('/one', { headers })).toBe(200)
    expect(await statusOf('/two', { headers })).toBe(403)
    expect(reached).toEqual(['one'])
  })

  test('of one guard may be shared by routes, each with its pattern and its parameters', async () => {
    const { app } = appWith((router, guard) => {
      const reads = guard.require('notes:read').params(z.strictObject({ id: z.coerce.number() }))
      for (const path of ['/notes/:id', '/books/:id'] as const)
        router.get(path, reads, (c) => c.json(c.req.valid('param')))
    })
    for (const path of ['/notes/7', '/books/7'])
      expect(await (await app.request(path, { headers })).json()).toEqual({ id: 7 })
    expect(given.events.map(({ route }) => route)).toEqual(['/notes/:id', '/books/:id'])
    expect((await app.request('/notes/a', { headers })).status).toBe(422)
  })

  test.each([false, true])('of a sub-app apply (own error handler: %s)', async (hasHandler) => {
    const { statusOf, reached } = appWith((app, guard, handler) => {
      const sub = new Hono()
      if (hasHandler) sub.onError((_, c) => c.text('sub', 418))
      sub.get('/:id', guard.require('notes:read').limit('expensive'), handler('sub'))
      sub.post('/:id', guard.require('notes:write'), handler('write'))
      sub.get('/open/:id', guard.public(), handler('open'))
      app.route('/sub', sub)
    })
    expect(await statusOf('/sub/1')).toBe(401)
    expect(await statusOf('/sub/1', { headers })).toBe(200)
    expect(given.events.at(-1)).toMatchObject({ route: '/sub/:id' })
    expect(limitsOf()).toEqual(['standard', 'expensive'])
    expect(await statusOf('/sub/1', { method: 'POST', headers })).toBe(hasHandler ? 418 : 403)
    expect(await statusOf('/sub/open/1')).toBe(200)
    expect(reached).toEqual(['sub', 'open'])
  })
})

test('app.use(guard) for two patterns that match runs once', async () => {
  const { app, statusOf } = appWith((router, guard, handler) => {
    router.use('/notes/*', guard)
    router.get('/notes/one', guard.require('notes:read'), handler('one'))
  })
  expect(app).toBeDefined()
  expect(await statusOf('/notes/one', { headers })).toBe(200)
  expect(given.events).toHaveLength(1)
})

test('a guard of a path leaves the others alone', async () => {
  const guard = guardWith(given)
  const app = new Hono()
  app.use('/api/*', guard)
  app.get('/api/notes', (c) => c.text('notes'))
  app.get('/page', (c) => c.text('page'))
  expect((await app.request('/page')).status).toBe(200)
  expect((await app.request('/api/notes')).status).toBe(401)
  expect((await app.request('/api/notes', { headers })).status).toBe(200)
})

test('a preflight request is answered by cors() before the guard', async () => {
  const app = new Hono()
  app.use(cors({ origin: 'https://app.test' }), guardWith(given))
  app.get('/notes', (c) => c.text('notes'))
  const preflight = { Origin: 'https://app.test', 'Access-Control-Request-Method': 'GET' }
  const response = await app.request('/notes', { method: 'OPTIONS', headers: preflight })
  expect(response.status).toBe(204)
  const refused = await app.request('/notes', { headers: { Origin: 'https://app.test' } })
  expect(refused.status).toBe(401)
  expect(refused.headers.get('access-control-allow-origin')).toBe('https://app.test')
})

test('a variable of the app with the name of a stage changes nothing', async () => {
  const { statusOf, reached } = appWith((app, guard, handler) => {
    app.use(async (c, next) => {
      for (const name of ['principal', 'caller', 'body', 'route', 'relation'])
        c.set(name as never, { roles: ['writer'] } as never)
      await next()
    })
    app.post('/notes', guard.require('notes:write'), handler('write'))
  })
  expect(await statusOf('/notes', json('{}', headers))).toBe(403)
  expect(reached).toEqual([])
})

test('bodies without a schema are limited, and c.req reads them', async () => {
  const { app } = appWith((router, guard) => {
    router.post('/text', guard.require('notes:read').maxBodyBytes(5), async (c) =>
      c.text(await c.req.text()),
    )
  })
  const chunks = (text: string) => new Blob([text]).stream()
  const send = (body: BodyInit) =>
    app.request('/text', { method: 'POST', headers, body, duplex: 'half' } as RequestInit)
  expect(await (await send('12345')).text()).toBe('12345')
  expect(await (await send(chunks('12345'))).text()).toBe('12345')
  expect((await send('123456')).status).toBe(413)
  expect((await send(chunks('123456'))).status).toBe(413)
})
