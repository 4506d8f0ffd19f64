/** The documented authorization requests of proxies, and what a client can do about their responses. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { IDENTITY_HEADERS } from '../../../src/validators/identity-headers.ts'
import {
  type AuthorizationRequest,
  type Listener,
  PROXIES,
  STRANGER,
  startListener,
} from './listener.ts'

let listener: Listener
let authorization: string

beforeAll(async () => {
  listener = await startListener({ withoutBody: ['POST /events'] })
  authorization = await listener.bearer({ claims: { sub: 'alice', roles: ['reader'] } })
})
afterAll(() => listener.close())

const bearer = (): readonly [string, string][] => [['Authorization', authorization]]

/** Headers that a client sends in the hope that they describe another request. */
const LIES = [
  ['X-Original-URL', 'https://api.test/public/ping'],
  ['X-Original-Method', 'GET'],
  ['X-Forwarded-Uri', '/public/ping'],
  ['X-Forwarded-Method', 'GET'],
] as const

describe.each(Object.entries(PROXIES))(
  'an authorization request of %s',
  (name, describeRequest) => {
    const authorize = (
      described: Parameters<typeof describeRequest>[0],
      more: AuthorizationRequest = {},
    ) => listener.authorize({ ...describeRequest(described), ...more })

    test('about a permitted request is 200, with the identity and the limits, for one call of Redis', async () => {
      await authorize({ target: '/orders', headers: bearer() })
      const before = listener.redis.decisions()
      const { status, headers, body } = await authorize({
        target: '/orders?limit=1',
        headers: bearer(),
      })
      expect(listener.redis.decisions() - before).toBe(1)
      expect(status).toBe(200)
      expect(body).toBe('')
      expect(headers).toMatchObject({
        'x-auth-subject': 'alice',
        'x-auth-roles': 'reader',
        'x-auth-tenant': '',
        'x-auth-scope': '',
        'x-portcullis-status': '200',
        ratelimit: expect.stringContaining('"standard"'),
        'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
        'cache-control': 'no-store',
      })
      expect(decodeJwt(String(headers['x-auth-assertion']))).toMatchObject({ sub: 'alice' })
    })

    test('about an anonymous request has every identity header, empty', async () => {
      const { status, headers } = await authorize({
        target: '/public/ping',
        headers: [['X-Auth-Subject', 'admin']],
      })
      expect(status).toBe(200)
      const identity = Object.entries(headers).filter(([header]) => header.startsWith('x-auth-'))
      expect(identity.map(([header]) => header).sort()).toEqual([...IDENTITY_HEADERS].sort())
      expect(identity.map(([, value]) => value)).toEqual(identity.map(() => ''))
    })

    test('without a token is 401 with the challenge', async () => {
      const { status, headers, body } = await authorize({ target: '/orders' })
      expect(status).toBe(401)
      expect(headers['www-authenticate']).toContain('resource_metadata=')
      expect(JSON.parse(body)).toMatchObject({ code: 'missing_token' })
    })

    test('without the permission is 403', async () => {
      const { status, body } = await authorize({ target: '/admin/users', headers: bearer() })
      expect(status).toBe(403)
      expect(JSON.parse(body)).toMatchObject({ code: 'insufficient_permission' })
    })

    test('above a limit says 429 and when to come back', async () => {
      const from: readonly [string, string][] = [
        ['X-Forwarded-For', `198.51.100.${Object.keys(PROXIES).indexOf(name)}`],
      ]
      const described = describeRequest({ target: '/few' })
      const headers = [
        ...(described.headers ?? []).filter(([header]) => header !== 'X-Forwarded-For'),
        ...from,
      ]
      const answers = []
      for (let i = 0; i < 3; i++) answers.push(await listener.authorize({ ...described, headers }))
      const { status, headers: last } = answers[2] ?? { status: 0, headers: {} }
      expect(answers.map((each) => each.headers['x-portcullis-status'])).toEqual([
        '200',
        '200',
        '429',
      ])
      expect(status).toBe(name === 'nginx' ? 403 : 429)
      expect(Number(last['retry-after'])).toBeGreaterThan(0)
    })

    test.each([
      ['an unknown route', 'GET', '/customers'],
      ['an unknown method', 'PUT', '/orders'],
      ['a path of the gateway itself', 'GET', '/-/healthz'],
      ['the endpoint itself', 'GET', '/-/decide'],
      ['its own metadata', 'GET', '/.well-known/jwks.json'],
      ['an operator call', 'GET', '/-/admin/bans'],
      ['a token request', 'POST', '/oauth/token'],
      ['a preflight request', 'OPTIONS', '/orders'],
    ])('about %s is 403', async (_, method, target) => {
      const { status, body } = await authorize({ method, target, headers: bearer() })
      expect(status).toBe(403)
      expect(JSON.parse(body)).toMatchObject({ code: 'insufficient_permission', status: 403 })
    })

    test('about a route that needs the body is refused, unless the policy allows it', async () => {
      const writer: [string, string][] = [
        ['Authorization', await listener.bearer({ claims: { roles: ['writer'] } })],
      ]
      const refused = await authorize({ method: 'POST', target: '/orders', headers: writer })
      expect(refused.status).toBe(403)
      expect(JSON.parse(refused.body)).toMatchObject({ code: 'body_elsewhere' })
      const anonymous = await authorize({ method: 'POST', target: '/orders' })
      expect(anonymous.status).toBe(401)
      const allowed = await authorize({ method: 'POST', target: '/events', headers: writer })
      expect(allowed.status).toBe(200)
      expect(allowed.headers['x-portcullis-undecided']).toBe('body')
      const whole = await authorize({ method: 'DELETE', target: '/orders/1', headers: writer })
      expect(whole.status).toBe(200)
      expect(whole.headers['x-portcullis-undecided']).toBeUndefined()
    })

    test('is not answered for anybody but a trusted proxy', async () => {
      const described = describeRequest({ target: '/orders', headers: bearer() })
      const { status, headers } = await listener.authorize({ ...described, from: STRANGER })
      expect(status).toBe(403)
      expect(headers['x-auth-subject']).toBeUndefined()
    })

    test.each(LIES.map((_, count) => LIES.slice(0, count + 1)).map((lies) => [lies]))(
      'is never decided by what the client has sent: %j',
      async (lies) => {
        const { status, headers } = await authorize({ target: '/orders', headers: lies })
        expect(status).not.toBe(200)
        expect(headers['x-auth-assertion']).toBeUndefined()
      },
    )

    test.each([
      ...['X_Auth_Roles', 'X.Auth.Roles', 'x_auth-subject', 'X-Auth_Tenant', 'X_HTTP_Method'],
      ...[
        'X_Forwarded_For',
        'X.Forwarded.Proto',
        'X-Forwarded_Host',
        'X_Forwarded_Prefix',
        'X_Real_IP',
      ],
    ])(
      'with %s, which an API may read as a header of the gateway or of the proxy, is refused',
      async (header) => {
        const headers: [string, string][] = [...bearer(), [header, 'admin']]
        const { status, headers: received } = await authorize({ target: '/orders', headers })
        expect(status).toBeGreaterThanOrEqual(400)
        expect(received['x-auth-assertion']).toBeUndefined()
      },
    )

    test('with X_Original_Filename, which names no other request, is allowed', async () => {
      const headers: [string, string][] = [...bearer(), ['X_Original_Filename', 'a.pdf']]
      expect((await authorize({ target: '/orders', headers })).status).toBe(200)
      const other: [string, string][] = [...bearer(), ['X_Original_URL', '/a']]
      expect((await authorize({ target: '/orders', headers: other })).status).not.toBe(200)
    })

    test('decides each of many requests for one coalesced route', async () => {
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => authorize({ target: '/orders/1', headers: bearer() })),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    })

    test('about a page for users without a session leads to the sign-in, and other requests to 401', async () => {
      const navigation: readonly [string, string][] = [
        ['Accept', 'text/html'],
        ['Sec-Fetch-Mode', 'navigate'],
        ['Sec-Fetch-Dest', 'document'],
      ]
      const page = await authorize({ target: '/pages/one?a=1', headers: navigation })
      expect(page.headers['x-portcullis-status']).toBe('302')
      expect(page.status).toBe(name === 'nginx' ? 401 : 302)
      expect(page.headers.location).toBe('/oauth/sign-in?return_to=%2Fpages%2Fone%3Fa%3D1')
      const call = await authorize({ target: '/pages/one' })
      expect(call.status).toBe(401)
    })

    test('about a WebSocket of a page from elsewhere is refused', async () => {
      const handshake = (origin: string): readonly [string, string][] => [
        ...bearer(),
        ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
        ['Sec-WebSocket-Version', '13'],
        ['Origin', origin],
      ]
      const own = await authorize({ target: '/socket', headers: handshake('https://app.test') })
      expect(own.status).toBe(200)
      const other = await authorize({ target: '/socket', headers: handshake('https://evil.test') })
      expect(other.headers['x-portcullis-status']).toBe('400')
      expect(other.status).toBeGreaterThanOrEqual(400)
    })
  },
)

describe('the listener', () => {
  test.each(['/', '/orders', '/-/healthz', '/-/decided', '/-//decide', '/oauth/token'])(
    'has nothing at %s',
    async (path) => {
      expect((await listener.authorize({ path })).status).toBe(404)
    },
  )

  test.each<[string, AuthorizationRequest['headers']]>([
    ['no description', []],
    ['no method', [['X-Original-URL', 'https://api.test/public/ping']]],
    ['no target', [['X-Forwarded-Method', 'GET']]],
    ['two targets', twice('X-Forwarded-Uri', '/public/ping')],
    ['two methods', twice('X-Forwarded-Method', 'GET')],
    ['a target that is no path', forwarded({ 'X-Forwarded-Uri': 'https://api.test/public/ping' })],
    ['a target with a space', forwarded({ 'X-Forwarded-Uri': '/public/ping HTTP/1.1' })],
    ['a target with a fragment', forwarded({ 'X-Forwarded-Uri': '/public/ping#/orders' })],
    ['a host with a path', forwarded({ 'X-Forwarded-Host': 'api.test/orders?' })],
    ['a scheme that is not HTTP', forwarded({ 'X-Forwarded-Proto': 'ftp' })],
    ['a method with a space', forwarded({ 'X-Forwarded-Method': 'GET /' })],
  ])('refuses %s with 400', async (_, headers) => {
    const { status, headers: received, body } = await listener.authorize({ headers: headers ?? [] })
    expect(status).toBe(400)
    expect(received['x-portcullis-status']).toBe('400')
    expect(JSON.parse(body)).toMatchObject({ code: 'malformed_request' })
  })

  test('is not on the main port, also for a trusted proxy', async () => {
    const described = PROXIES.traefik?.({ target: '/public/ping' }) ?? {}
    expect((await listener.authorize(described, listener.url)).status).toBe(404)
  })

  test('never reaches an origin', () => {
    expect(listener.reached).toEqual([])
  })

  test('counts clients by the address that the proxy reports', async () => {
    const described = PROXIES.caddy?.({ target: '/few' }) ?? {}
    const answers = []
    for (let i = 0; i < 3; i++) answers.push((await listener.authorize(described)).status)
    expect(answers).toEqual([200, 200, 429])
  })

  test('an outage of Redis is 503, never 401 or 403', async () => {
    listener.redis.setAnswering(false)
    try {
      for (const describeRequest of Object.values(PROXIES)) {
        const { status, headers } = await listener.authorize(
          describeRequest({ target: '/orders', headers: bearer() }),
        )
        expect(status).toBe(503)
        expect(Number(headers['retry-after'])).toBeGreaterThan(0)
      }
    } finally {
      listener.redis.setAnswering(true)
    }
  })
})

const DESCRIPTION = {
  'X-Forwarded-Host': 'api.test',
  'X-Forwarded-Method': 'GET',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Uri': '/public/ping',
}

function forwarded(changes: Partial<Record<keyof typeof DESCRIPTION, string>>): [string, string][] {
  return Object.entries({ ...DESCRIPTION, ...changes })
}

function twice(name: keyof typeof DESCRIPTION, value: string): [string, string][] {
  return [...Object.entries(DESCRIPTION), [name, value]]
}

describe.each(Object.entries(PROXIES))('the path that %s states', (_, describeRequest) => {
  test.each(
    // biome-ignore format: a table
    [
      '//admin/users', '/\\admin/users', '/admin%2fusers', '/a/..%2fadmin/users', '/%5cadmin/users',
      '/%2561dmin/users', '/ADMIN/users', '/admin;/users', '/public/..;/admin/users', '/admin%00/users',
      '/public/../admin/users', '/public/%2e%2e/admin/users', '/./admin/users', '/admin//users',
      '/admin/users/', '/admin/users.json', '/admin/users/.', '/%zz', '/public/ping/../../admin/users',
      '/public/ping%2f..%2f..%2fadmin/users', '/admin/users%20', '/admin/%75sers;x=1', '/admin/users%3f',
    ],
  )('%s opens nothing that the caller may not use', async (target) => {
    const { status, headers } = await listener.authorize(
      describeRequest({ target, headers: bearer() }),
    )
    expect(status).toBeGreaterThanOrEqual(400)
    expect(headers['x-auth-assertion']).toBeUndefined()
  })

  test('may contain what a route allows', async () => {
    for (const target of ['/orders/a%20b', '/orders/1?next=/../x&y=%2f', '/orders/%C3%A9']) {
      const { status } = await listener.authorize(describeRequest({ target, headers: bearer() }))
      expect([target, status]).toEqual([target, 200])
    }
  })
})
