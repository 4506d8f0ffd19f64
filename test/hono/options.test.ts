/** The options of `portcullis()`: mistakes, defaults, and options that depend on the environment. */
import { Hono, type MiddlewareHandler } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Misconfigured, portcullis } from '../../src/hono/index.ts'
import { errorsLogged, guardWith, type Surroundings, surroundings } from './app.ts'

let given: Surroundings
beforeAll(async () => {
  given = await surroundings()
})
afterAll(() => given?.redis.close())
beforeEach(() => {
  given.events.length = 0
})

function mistakesOf(act: () => unknown): readonly string[] {
  try {
    act()
    return []
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
}

const WRONG = {
  issuers: [{ issuer: undefined, audience: 'notes', algorithms: ['none'] }],
  redis: { url: 'redis.example', token: undefined, timeoutMs: 1 },
  roles: { reader: ['notes'] },
  limits: { standard: '100/m', expensive: { limit: 0, windowSeconds: 60 } },
  abuse: { bans: { violations: 0 } },
  revocation: { maxStalenessMs: -1 },
  recheckSeconds: -1,
  recheckGraceSeconds: 3_601,
  maxBodyBytes: -1,
  maxConcurrentRequests: 0,
  tokenCacheBytes: 1_048_575,
  audit: {},
  clientAddress: 'X-Real-IP',
  nonsense: {},
}
const MISCONFIGURED = {
  type: 'urn:portcullis:problem:misconfigured',
  title: 'Misconfigured',
  status: 500,
  code: 'misconfigured',
  detail: 'The server is not configured correctly; its log names the mistakes.',
}
const PATHS = [
  'issuers[0].issuer',
  'issuers[0].algorithms[0]',
  'redis.url',
  'redis.token',
  'redis.timeoutMs',
  'roles.reader[0]',
  'limits.standard',
  'limits.expensive.limit',
  'limits.expensive.by',
  'limits.expensive.onUnavailable',
  'abuse.bans.violations',
  'revocation.maxStalenessMs',
  'recheckSeconds',
  'recheckGraceSeconds',
  'maxBodyBytes',
  'maxConcurrentRequests',
  'tokenCacheBytes',
  'audit',
  'clientAddress',
]

describe('wrong options', () => {
  test('are reported at the start, all at once, with their paths and without their values', () => {
    const mistakes = mistakesOf(() => portcullis(WRONG as never))
    expect(mistakes).toContain('Unrecognized key: "nonsense"')
    const placed = mistakes.filter((mistake) => !mistake.startsWith('Unrecognized'))
    const paths = placed.map((mistake) => mistake.slice(0, mistake.indexOf(': ')))
    expect(paths.sort()).toEqual([...PATHS].sort())
    expect(mistakes.join()).not.toMatch(/redis\.example|X-Real-IP/)
  })

  test.each([
    ['nothing', undefined, /must be an object/],
    ['null', null, /must be an object/],
    ['a text', 'options', /must be an object/],
    ['no issuers', { redis: { url: 'https://r.test', token: 't' } }, /^issuers: /],
    [
      'an empty list of issuers',
      { issuers: [], redis: { url: 'https://r.test', token: 't' } },
      /^issuers: must not be empty$/,
    ],
    ['no Redis', { issuers: [{ issuer: 'https://i.test', audience: 'a' }] }, /^redis: /],
  ])('are never a TypeError: %s', (_, options, expected) => {
    const mistakes = mistakesOf(() => portcullis(options as never))
    expect(mistakes).toHaveLength(1)
    expect(mistakes[0]).toMatch(expected)
  })

  const ISSUER_MESSAGE =
    'issuers[0].issuer: must be an https URL without query and fragment, so that its metadata can be found; or set jwksUri'

  test.each([
    ['missing', undefined, 'issuers[0].issuer: is missing'],
    ['a name', 'me.eu.auth0.com', ISSUER_MESSAGE],
    ['without TLS', 'http://me.eu.auth0.com/', ISSUER_MESSAGE],
    ['with a query', 'https://me.eu.auth0.com/?a', ISSUER_MESSAGE],
    ['a number', 7, 'issuers[0].issuer: Invalid input: expected string, received number'],
  ])('name an issuer that is %s, and what it must be', (_, issuer, message) => {
    const issuers = [{ issuer, audience: 'notes' }]
    const options = { ...given.options, issuers }
    expect(mistakesOf(() => portcullis(options as never))).toEqual([message])
  })

  test('of a route are reported at the start', () => {
    const guard = guardWith(given, { limits: { standard: '1/s', expensive: '1/s' } })
    expect(mistakesOf(() => guard.require('notes'))).toEqual([
      'must be a permission such as notes:read',
    ])
    expect(mistakesOf(() => guard.require('notes:read').limit('costly'))).toEqual([
      'unknown limit "costly"; the options have "standard", "expensive"',
    ])
    expect(mistakesOf(() => guard.require('notes:read').body({} as never))).toEqual([
      'must be a zod schema',
    ])
    expect(mistakesOf(() => guard.require('notes:read').maxBodyBytes(-1))).toHaveLength(1)
  })
})

describe('a permission that no role grants', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  beforeEach(() => warn.mockClear())
  afterAll(() => warn.mockRestore())

  test('is logged once, because a name may be misspelled', () => {
    const guard = guardWith(given)
    guard.require('notes:read')
    guard.require('notes:raed').maxBodyBytes(0)
    guard.require({ name: 'notes:raed', mode: 'observe' })
    expect(warn.mock.calls).toEqual([
      ["guard.require('notes:raed'): no role of the options grants it; only scopes of a token can"],
    ])
  })

  test.each([
    ['a pattern covers it', { editor: ['notes:*'] }],
    ['the options have no roles', {}],
  ])('is not logged if %s', (_, roles) => {
    guardWith(given, { roles }).require('notes:raed')
    expect(warn).not.toHaveBeenCalled()
  })

  test('is granted by the scopes of a token without roles', async () => {
    const guard = guardWith(given)
    const app = new Hono().use(guard)
    app.get('/', guard.require('notes:export'), (c) => c.text('in'))
    const headers = await given.bearer([], { claims: { scope: 'notes:export' } })
    expect((await app.request('/', { headers })).status).toBe(200)
    expect((await app.request('/', { headers: await given.bearer() })).status).toBe(403)
  })
})

describe('options that are a function of the environment', () => {
  const appOf = (guard: MiddlewareHandler) => new Hono().use(guard).get('/', (c) => c.text('in'))

  test('are built once for each environment, and serve every request', async () => {
    const names: (string | undefined)[] = []
    const app = appOf(
      portcullis(({ NAME }: { readonly NAME?: string }) => {
        names.push(NAME)
        return given.options
      }),
    )
    const headers = await given.bearer()
    const [one, other] = [{ NAME: 'one' }, { NAME: 'other' }]
    for (const env of [one, one, other, one])
      expect((await app.request('/', { headers }, env)).status).toBe(200)
    expect(names).toEqual(['one', 'other'])
  })

  test('get the variables of the process where a server passes none', async () => {
    const options = vi.fn((_: object) => given.options)
    const app = appOf(portcullis(options))
    const headers = await given.bearer()
    for (const env of [undefined, {}, { incoming: {}, outgoing: {} }, { incoming: {} }])
      expect((await app.request('/', { headers }, env)).status).toBe(200)
    expect(options.mock.calls).toEqual([[process.env]])
    expect(options).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['that are wrong', () => WRONG, 'limits.standard: '],
    [
      'that throw',
      () => {
        throw new TypeError('no bindings')
      },
      'the function threw TypeError: no bindings',
    ],
  ])('%s are logged once, and each request is "misconfigured"', async (_, options, message) => {
    let reached = false
    const app = new Hono().use(portcullis(options as never)).get('/', (c) => {
      reached = true
      return c.text('in')
    })
    const env = {}
    const log = await errorsLogged(async () => {
      for (let sent = 0; sent < 2; sent++) {
        const response = await app.request('/', {}, env)
        expect(response.status).toBe(500)
        expect(response.headers.get('Content-Type')).toBe('application/problem+json')
        expect(await response.json()).toEqual(MISCONFIGURED)
      }
    })
    expect(log.split('The options of portcullis() are not valid')).toHaveLength(2)
    expect(log).toContain(message)
    expect(reached).toBe(false)
  })

  test('with a route that names an unknown limit are "misconfigured"', async () => {
    const guard = portcullis(
      () => given.options as object as { limits: { standard: '1/s' } } & typeof given.options,
    )
    const app = new Hono().use(guard)
    app.get('/', guard.require('notes:read').limit('none' as never), (c) => c.text('in'))
    const log = await errorsLogged(async () => {
      const response = await app.request('/', { headers: await given.bearer() })
      expect(response.status).toBe(500)
    })
    expect(log).toContain(`guard.require('notes:read').limit('none') is not valid`)
  })
})

test('Redis can be a client of the app: the port has one method', async () => {
  const { createRedisRest } = await import('../../src/redis/rest.ts')
  const { url, token } = given.redis
  const send = vi.spyOn(createRedisRest({ url, token, timeoutMs: 5_000 }), 'send')
  const redis = { send: (...call: Parameters<typeof send>) => send(...call) }
  const app = new Hono().use(guardWith(given, { redis })).get('/', (c) => c.text('in'))
  expect((await app.request('/', { headers: await given.bearer() })).status).toBe(200)
  expect(send).toHaveBeenCalledTimes(1)
})

describe('a wrong order', () => {
  test.each([false, true])(
    'of app.use(guard) and a route is a 500, and the log names both (own handler: %s)',
    async (hasHandler) => {
      const guard = guardWith(given)
      const app = new Hono()
      if (hasHandler) app.onError((_, c) => c.text('defect', 500))
      let reached = false
      app.get('/notes/:id', guard.require('notes:read'), (c) => {
        reached = true
        return c.text('in')
      })
      app.use(guard)
      const headers = await given.bearer()
      const log = await errorsLogged(async () =>
        expect((await app.request('/notes/1', { headers })).status).toBe(500),
      )
      expect(log).toBe(
        "wrong order of middlewares: guard.require('notes:read') on GET /notes/:id: " +
          'app.use(guard) must run before it',
      )
      expect(reached).toBe(false)
    },
  )

  test('of two guards is a 500, too', async () => {
    const app = new Hono().use(guardWith(given))
    app.get('/', guardWith(given).require('notes:read'), (c) => c.text('in'))
    const log = await errorsLogged(async () =>
      expect((await app.request('/', { headers: await given.bearer() })).status).toBe(500),
    )
    expect(log).toContain('another guard did')
  })
})

test('by default, events are lines of the console', async () => {
  const { audit: _, ...options } = given.options
  const write = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    const guard = portcullis(options)
    const app = new Hono().use(guard)
    app.get('/notes/:id', guard.authenticated(), (c) => c.text('in'))
    await app.request('/notes/1', { headers: await given.bearer() })
    const events = write.mock.calls.map(([line]) => JSON.parse(line))
    expect(events).toMatchObject([{ method: 'GET', route: '/notes/:id', decision: 'allow' }])
    expect(Object.keys(events[0].durationsMs)).toEqual(
      expect.arrayContaining(['authenticate', 'admit', 'handler']),
    )
  } finally {
    write.mockRestore()
  }
})
