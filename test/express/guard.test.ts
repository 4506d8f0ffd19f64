/** `portcullis/express` over real servers: order of handlers, bodies, addresses, errors, open responses. */
import express, { type Application, type ErrorHandler, type Handler } from 'express'
import express4 from 'express4'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { type GuardOptions, portcullis, requestIdOf } from '../../src/express/index.ts'
import { listen } from '../guard/apps.ts'
import { sendRaw } from '../harness/raw.ts'
import { errorsLogged, json, ROLES, type Surroundings, surroundings } from '../hono/app.ts'

let given: Surroundings
let headers: { Authorization: string }
beforeAll(async () => {
  given = await surroundings()
  headers = await given.bearer(['writer'])
})
afterAll(() => given?.redis.close())
const ends: (() => unknown)[] = []
beforeEach(() => {
  given.events.length = 0
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const note = z.strictObject({ text: z.string() })

async function serve(
  make: typeof express,
  routes: (app: Application, guard: ReturnType<typeof guardOf>) => void,
  more: Partial<GuardOptions> = {},
) {
  const app = make()
  routes(app, guardOf(more))
  const server = await listen(app)
  ends.push(server.close)
  return { ...server, url: server.url ?? '' }
}

function guardOf(more: Partial<GuardOptions>) {
  const { clientAddress, ...options } = given.options
  return portcullis<object, string, string>({ ...options, roles: ROLES, ...more })
}

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
] as const)('%s', (_, make) => {
  test('a guard of a route guards it without app.use(guard)', async () => {
    const reached: string[] = []
    const { request } = await serve(make, (app, guard) => {
      app.get('/notes/:id', guard.require('notes:read'), (req, res) => {
        reached.push(requestIdOf(req))
        res.json(req.caller?.subject)
      })
    })
    expect((await request('/notes/1')).status).toBe(401)
    const response = await request('/notes/1', { headers })
    expect([response.status, await response.json()]).toEqual([200, 'eve'])
    expect(reached).toEqual([response.headers.get('x-request-id')])
    const own = () => given.events.filter(({ route }) => route !== null)
    await expect
      .poll(() => own().map(({ route, status }) => [route, status]))
      .toEqual([
        ['/notes/:id', 401],
        ['/notes/:id', 200],
      ])
  })

  test('a public route that calls next() opens nothing behind app.use(guard)', async () => {
    const reached: string[] = []
    const { request } = await serve(make, (app, guard) => {
      app.use('/files', guard.public(), (_req, _res, next) => next())
      app.get('/files/a', guard.require('notes:read'), (_, res) => {
        reached.push('a')
        res.json(null)
      })
      app.use(guard)
      app.get('/files/b', (_, res) => {
        reached.push('b')
        res.json(null)
      })
    })
    for (const path of ['/files/a', '/files/b']) {
      expect((await request(path)).status, path).toBe(401)
      expect((await request(path, { headers })).status, path).toBe(200)
    }
    expect(reached).toEqual(['a', 'b'])
  })

  test('a public route behind app.use(guard) stays closed, and the log says why', async () => {
    const log = vi.spyOn(console, 'warn').mockImplementation(() => {})
    try {
      const { request } = await serve(make, (app, guard) => {
        app.use(guard)
        app.get('/about', guard.public(), (_, res) => res.json(null))
      })
      expect((await request('/about')).status).toBe(401)
      expect((await request('/about')).status).toBe(401)
      expect(log.mock.calls.flat()).toEqual([expect.stringMatching(/register it before app\.use/)])
    } finally {
      log.mockRestore()
    }
  })

  test('limits and bodies of a route in a nested router are known ahead', async () => {
    const { request } = await serve(
      make,
      (app, guard) => {
        app.use(guard)
        const inner = make.Router()
        const writes = guard.require('notes:write').limit('writes').body(note).maxBodyBytes(2_000)
        inner.post('/notes', writes, (req, res) => res.json(req.body))
        app.use('/api', inner)
      },
      { maxBodyBytes: 10, limits: { writes: '9/min' } },
    )
    await request('/api/notes', { headers })
    const before = given.redis.calls()
    const body = JSON.stringify({ text: 'a'.repeat(1_000) })
    const response = await request('/api/notes', json(body, headers))
    expect(response.status).toBe(200)
    expect(given.redis.calls() - before).toBe(1)
    expect(response.headers.get('ratelimit-policy')).toBe('"writes";q=9;w=60')
    await expect.poll(() => given.events.at(-1)).toMatchObject({ route: '/api/notes' })
  })

  test('a body is checked as it was sent, and after a parser as it was parsed', async () => {
    const { request } = await serve(make, (app, guard) => {
      const writes = guard.require('notes:write').body(note)
      app.post('/before', writes, make.json(), (req, res) => res.json(req.body))
      app.post('/after', make.json(), writes, (req, res) => res.json(req.valid?.body))
    })
    for (const path of ['/before', '/after']) {
      const response = await request(path, json('{"text":"a"}', headers))
      expect([response.status, await response.json()], path).toEqual([200, { text: 'a' }])
      expect((await request(path, json('{"text":1}', headers))).status, path).toBe(422)
    }
    const twice = json('{"text":"a","text":"b"}', headers)
    expect((await request('/before', twice)).status).toBe(400)
  })

  test('a body that something else has read is a mistake of the app, not of the client', async () => {
    const { request } = await serve(make, (app, guard) => {
      app.use((req, _res, next) => {
        req.resume()
        req.once('end', () => next())
      })
      app.post('/notes', guard.require('notes:write').body(note), (_, res) => res.json(null))
    })
    let status = 0
    const log = await errorsLogged(async () => {
      status = (await request('/notes', json('{"text":"a"}', headers))).status
    })
    expect(status).toBe(500)
    expect(log).toContain(
      "guard.require('notes:write').body(…): the body was read before the guard",
    )
  })

  test('a body without a length is limited, whatever reads it', async () => {
    const reached: string[] = []
    const { request } = await serve(
      make,
      (app, guard) => {
        app.use(guard)
        app.post('/notes', make.json(), (_, res) => {
          reached.push('notes')
          res.json(null)
        })
      },
      { maxBodyBytes: 50 },
    )
    const send = (length: number) => {
      const text = JSON.stringify('a'.repeat(length))
      const body = new Blob([`[${text}]`]).stream()
      const init = json('', headers)
      return request('/notes', { ...init, body, duplex: 'half' } as RequestInit)
    }
    expect((await send(20)).status).toBe(200)
    expect((await send(60)).status).toBe(413)
    expect(reached).toEqual(['notes'])
  })

  test('errors of handlers go to the error handlers of the app, and refusals do not', async () => {
    const seen: string[] = []
    const { request } = await serve(make, (app, guard) => {
      app.use(guard)
      app.get('/next', (_req, _res, next) => next(new Error('of next')))
      app.get(
        '/rejects',
        guard.require('notes:read').handle(async () => {
          throw new Error('of a promise')
        }),
      )
      const onError: ErrorHandler = (error, _req, res, _next) => {
        seen.push(error.message)
        res.status(418).json(null)
      }
      app.use(onError)
    })
    expect((await request('/next')).status).toBe(401)
    expect((await request('/next', { headers })).status).toBe(418)
    expect((await request('/rejects', { headers })).status).toBe(418)
    expect(seen).toEqual(['of next', 'of a promise'])
    await expect
      .poll(() => given.events.map(({ decision, status }) => [decision, status]))
      .toEqual([
        ['deny', 401],
        ['allow', 418],
        ['allow', 418],
      ])
  })

  test.each([[undefined], ['route'], ['router']])(
    'a stage that throws %s admits no request',
    async (thrown) => {
      const reached: string[] = []
      const routes = (app: Application, guard: ReturnType<typeof guardOf>) => {
        const handled = guard.require('notes:read').handle(() => reached.push('handle'))
        app.get('/handle', handled)
        app.get('/route', guard.require('notes:read'), () => reached.push('route'))
        app.use('/notes', guard)
        app.use((_, res) => {
          reached.push('behind')
          res.json(null)
        })
        const onError: ErrorHandler = (_error, _req, res, _next) => {
          res.status(500).json(null)
        }
        app.use(onError)
      }
      const { request } = await serve(make, routes, {
        clientAddress: () => {
          throw thrown
        },
      })
      for (const path of ['/handle', '/route', '/notes'])
        expect((await request(path, { headers })).status, path).toBe(500)
      expect(reached).toEqual([])
    },
  )

  test.each(['before', 'after'] as const)(
    'a larger limit of another route does not count once the URL is rewritten (parser %s)',
    async (parser) => {
      const reached: string[] = []
      const { request } = await serve(
        make,
        (app, guard) => {
          app.use(guard)
          app.use((req, _res, next) => {
            const to = req.headers['x-to']
            if (typeof to === 'string') req.url = to
            next()
          })
          if (parser === 'before') app.use(make.json())
          const answer: Handler = (req, res) => {
            reached.push(req.url ?? '')
            res.json(null)
          }
          const router = make.Router()
          router.post('/', guard.require('notes:write').maxBodyBytes(1_000), make.json(), answer)
          app.use('/uploads', router)
          app.post('/notes', guard.require('notes:write'), make.json(), answer)
          app.post('/open', make.json(), answer)
        },
        { maxBodyBytes: 50 },
      )
      const text = JSON.stringify(['a'.repeat(200)])
      const send = async (path: string, to?: string, small = false) => {
        const sent = small ? '[]' : text
        const init = json(sent, { ...headers, ...(to === undefined ? {} : { 'x-to': to }) })
        const body = new Blob([sent]).stream()
        const whole = await request(path, init)
        const inParts = await request(path, { ...init, body, duplex: 'half' } as RequestInit)
        return [whole.status, inParts.status]
      }
      for (const to of ['/notes', '/open', '/open?a=b'])
        expect(await send('/uploads', to), to).toEqual([413, 413])
      expect(reached).toEqual([])
      expect(await send('/uploads', '/open', true)).toEqual([200, 200])
      for (const path of ['/uploads', '/uploads/', '/uploads?a=b'])
        expect(await send(path), path).toEqual([200, 200])
    },
  )

  test('the address is that of `trust proxy`', async () => {
    const send = async (trust: boolean) => {
      const { request } = await serve(make, (app, guard) => {
        if (trust) app.set('trust proxy', 'loopback')
        app.use(guard)
        app.get('/', (_, res) => res.json(null))
      })
      await request('/', { headers: { ...headers, 'X-Forwarded-For': '192.0.2.7' } })
      await expect.poll(() => given.events.length).toBe(trust ? 2 : 1)
      return given.events.at(-1)?.address
    }
    expect(await send(false)).toBe('127.0.0.1')
    expect(await send(true)).toBe('192.0.2.7')
  })

  test.each([
    ['dots', 'GET /public/../notes HTTP/1.1'],
    ['an encoded dot', 'GET /public/%2e%2e/notes HTTP/1.1'],
    ['a backslash', 'GET /public\\notes HTTP/1.1'],
    ['two slashes', 'GET //notes HTTP/1.1'],
    ['an absolute target', 'GET http://other.test/notes HTTP/1.1'],
  ])('a target with %s is refused as it was sent', async (_name, line) => {
    const reached: string[] = []
    const { url } = await serve(make, (app, guard) => {
      app.use(guard)
      app.use((req, res) => {
        reached.push(req.url ?? '')
        res.end('reached')
      })
    })
    const lines = [line, 'Host: app.test', `Authorization: ${headers.Authorization}`]
    const answer = await sendRaw(url, `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`)
    expect([answer.status, reached]).toEqual([400, []])
    expect(answer.text).toContain('ambiguous_path')
  })

  test.each([
    ['two credentials', ['Authorization: Bearer a.b.c'], 400],
    ['a body of GET', ['Content-Length: 2'], 400],
    ['an invalid host', [], 400],
  ] as const)('a request with %s is refused', async (name, more, status) => {
    const reached: string[] = []
    const { url } = await serve(make, (app, guard) => {
      app.use(guard)
      app.use((req, res) => {
        reached.push(req.url ?? '')
        res.end('reached')
      })
    })
    const host = name === 'an invalid host' ? 'a b' : 'app.test'
    const lines = [
      'GET / HTTP/1.1',
      `Host: ${host}`,
      `Authorization: ${headers.Authorization}`,
      ...more,
    ]
    const answer = await sendRaw(url, `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n{}`)
    expect([answer.status, reached]).toEqual([status, []])
  })

  test('a client that leaves before the decision reaches no handler', async () => {
    const reached: string[] = []
    const client = new AbortController()
    const { request } = await serve(make, (app, guard) => {
      app.use((_req, res, next) => {
        if (client.signal.aborted) return next()
        res.once('close', () => next())
        client.abort()
      })
      app.use(guard)
      app.use((req, res) => {
        reached.push(req.url ?? '')
        res.end()
      })
    })
    await expect(request('/', { headers, signal: client.signal })).rejects.toThrow()
    // The event of the next request is the only one.
    expect((await request('/', {})).status).toBe(401)
    expect(reached).toEqual([])
    expect(given.events).toMatchObject([{ decision: 'deny', status: 401 }])
  })

  test('an event stream ends after the revocation of its token', async () => {
    const { request } = await serve(
      make,
      (app, guard) => {
        app.use(guard)
        app.get('/events', (req, res) => {
          res.setHeader('Content-Type', 'text/event-stream')
          res.write('data: begin\n\n')
          void guard.revoke(req)
        })
      },
      { recheckSeconds: 1 },
    )
    const response = await request('/events', { headers: await given.bearer() })
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
    const reasons = () => given.events.map(({ reason }) => reason)
    await expect.poll(reasons).toContainEqual(expect.stringMatching(/^stream_ended:token_revoked/))
  })
})

test('wrong options are mistakes at the start; those of a function refuse every request', async () => {
  expect(() => portcullis({ issuers: [], redis: { url: '', token: '' } })).toThrow(/issuers/)
  const app = express()
  app.use(
    portcullis(() => {
      throw new Error('no variable')
    }),
  )
  app.use((_, res) => res.end('reached'))
  const { request, close } = await listen(app)
  ends.push(close)
  let response = new Response()
  const log = await errorsLogged(async () => {
    response = await request('/', { headers })
  })
  expect(log).toContain('no variable')
  expect([response.status, await response.json()]).toMatchObject([500, { code: 'misconfigured' }])
})
