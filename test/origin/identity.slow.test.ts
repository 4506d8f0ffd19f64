import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { headersOf, startHttpOrigin } from './origin-server.ts'
import { RUNTIMES, startForwarding } from './runtimes.ts'
import { exchange } from './wire.ts'
import type { Running } from './workerd.ts'

/** Headers that the platform adds to each request. */
const OF_PLATFORM: ReadonlySet<string> = new Set(['cache-control', 'pragma', 'connection'])

describe.each(RUNTIMES)('on $name', (runtime) => {
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let gateway: Running

  beforeAll(async () => {
    origin = await startHttpOrigin((request, response) => {
      const reply = JSON.parse((request.headers['test-reply'] as string | undefined) ?? '{}')
      request.resume().on('end', () => {
        response.writeHead(reply.status ?? 200, reply.headers ?? {}).end('from the origin')
      })
    })
    gateway = await startForwarding(runtime, `http://127.0.0.1:${origin.port}/base`)
  })
  beforeEach(() => {
    origin.requests.length = 0
  })
  afterAll(() => Promise.all([gateway?.stop(), origin?.close()]))

  const ALICE = {
    issuer: 'https://issuer.test/',
    subject: 'alice',
    client: 'cli',
    tenant: 't1',
    roles: ['reader', 'a,b'],
    scopes: ['orders:read', 'x'],
    expiresAtSeconds: 9_999_999_999,
  }
  const asAlice = `Test-Caller: ${JSON.stringify(ALICE)}`
  const onRoute = (route: object) => `Test-Route: ${JSON.stringify(route)}`
  const replying = (reply: object) => `Test-Reply: ${JSON.stringify(reply)}`

  function get(target: string, ...headers: string[]) {
    return send('GET', target, ...headers)
  }

  function send(method: string, target: string, ...headers: string[]) {
    const lines = [`${method} ${target} HTTP/1.1`, 'Host: gateway.test', ...headers]
    return exchange(gateway.port, `${lines.join('\r\n')}\r\n\r\n`)
  }

  /** Returns what the origin received, without the test's own headers and those of any client. */
  function receivedHeaders(): [string, string][] {
    expect(origin.requests).toHaveLength(1)
    const [request] = origin.requests
    if (request === undefined) throw new Error('the origin received no request')
    return headersOf(request)
      .filter(([name]) => !name.startsWith('test-') && !OF_PLATFORM.has(name))
      .sort(([a], [b]) => (a < b ? -1 : 1))
  }

  const named = (name: string) => receivedHeaders().filter(([other]) => other === name)

  describe('the headers that the origin receives', () => {
    test('identify a known caller by gateway headers only [S54]', async () => {
      expect((await get('/orders', asAlice)).status).toBe(200)
      expect(receivedHeaders()).toEqual([
        ['host', `127.0.0.1:${origin.port}`],
        ['traceparent', expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)],
        ['x-auth-assertion', 'assertion-of-alice'],
        ['x-auth-client', 'cli'],
        ['x-auth-issuer', 'https://issuer.test/'],
        ['x-auth-roles', 'reader,a%2Cb'],
        ['x-auth-scope', 'orders:read x'],
        ['x-auth-subject', 'alice'],
        ['x-auth-tenant', 't1'],
        ['x-forwarded-host', 'gateway.test'],
        ['x-forwarded-port', '80'],
        ['x-forwarded-proto', 'http'],
        ['x-request-id', expect.stringMatching(/^[0-9a-f-]{36}$/)],
      ])
    })

    test("include the client's own headers unchanged, in UTF-8 too; fields of one name are joined to one list", async () => {
      await get('/orders', 'X-Name: caf\xc3\xa9', 'X-Twice: a', 'x-twice: b', 'X-Spaced: a\tb  c')
      expect([...named('x-name'), ...named('x-twice'), ...named('x-spaced')]).toEqual([
        ['x-name', 'caf\xc3\xa9'],
        ['x-twice', 'a, b'],
        ['x-spaced', 'a\tb  c'],
      ])
    })

    test('have no identity for an anonymous caller [S54]', async () => {
      await get('/orders')
      expect(receivedHeaders().filter(([name]) => name.startsWith('x-auth'))).toEqual([])
    })

    const forged = [
      'X-Auth-Subject: admin',
      'x-auth-subject: admin',
      'X_Auth_Subject: admin',
      'X-Auth_Subject: admin',
      'X_AUTH_SUBJECT: admin',
      'X.Auth.Subject: admin',
      'X-Auth-Roles: admin',
      'X_Auth_Roles: admin',
      'X-Auth-Assertion: ey',
      'X-Auth-Anything: admin',
      'X-Request-Id: theirs',
      'X_Request_Id: theirs',
      'X-Forwarded-For: 198.51.100.1',
      'X-Forwarded-User: admin',
      'X-Real-IP: 198.51.100.1',
      'Forwarded: for=198.51.100.1',
      'X-Original-URL: /admin',
      'X-Rewrite-URL: /admin',
      'X-HTTP-Method-Override: DELETE',
    ]
    test('include no identity header of the client, in any spelling [S54, S52, S56]', async () => {
      await get('/orders', ...forged, ...forged, asAlice, 'CF-Connecting-IP: 2001:db8::7')
      expect(JSON.stringify(receivedHeaders())).not.toMatch(/admin|theirs|198\.51|DELETE|"ey"/)
      expect(named('x-auth-subject')).toEqual([['x-auth-subject', 'alice']])
      expect(named('x-forwarded-for')).toEqual([['x-forwarded-for', '2001:db8::7']])
      expect(receivedHeaders().filter(([name]) => /[_.]/.test(name))).toEqual([])
    })

    test.each(['X-Auth-Subject : admin', 'X-Auth-Subject\t: admin', ' X-Auth-Subject: admin'])(
      '%j never arrives as a header [S54]',
      async (line) => {
        const reply = await get('/orders', 'Accept: */*', line, asAlice)
        if (reply.status === 200) expect(JSON.stringify(receivedHeaders())).not.toContain('admin')
        else expect(origin.requests).toHaveLength(0)
      },
    )

    test('Connection cannot remove gateway headers, and removes the headers that it names [S55]', async () => {
      const options = 'close, X-Auth-Subject, X-Request-Id, traceparent, X-Hop, authorization'
      await get(
        '/orders',
        `Connection: ${options}`,
        'X-Hop: 1',
        'TE: trailers',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'Upgrade: h2c',
        asAlice,
      )
      expect(named('x-auth-subject')).toEqual([['x-auth-subject', 'alice']])
      expect(named('x-request-id')).toHaveLength(1)
      expect(named('traceparent')).toHaveLength(1)
      for (const name of ['x-hop', 'te', 'keep-alive', 'proxy-connection', 'upgrade'])
        expect(named(name)).toEqual([])
    })

    test('credentials arrive only on a route that forwards them [S59]', async () => {
      const credentials = [
        'Authorization: DPoP secret',
        'DPoP: a.secret.proof',
        'Cookie: sid=secret',
      ]
      await get('/orders', ...credentials, asAlice)
      expect(JSON.stringify(receivedHeaders())).not.toContain('secret')
      origin.requests.length = 0
      const route = onRoute({ forwardAuthorization: true, forwardCookies: true })
      await get('/orders', ...credentials, route)
      expect(named('authorization')).toEqual([['authorization', 'DPoP secret']])
      expect(named('dpop')).toEqual([['dpop', 'a.secret.proof']])
      expect(named('cookie')).toEqual([['cookie', 'sid=secret']])
    })

    test.each([
      ['/orders?a=%2f&b=1+2&c=%zz&a=/../x//y', '/base/orders?a=%2f&b=1+2&c=%zz&a=/../x//y'],
      ['/orders?', '/base/orders?'],
      ['/caf%C3%A9/a%20b/user%40x', '/base/caf%C3%A9/a%20b/user%40x'],
      ["/a!$&'()*+,=:@b", "/base/a!$&'()*+,=:@b"],
      ['http://gateway.test/orders', '/base/orders'],
    ])('%s is forwarded unchanged, below the base path [S51, S57]', async (target, forwarded) => {
      expect((await get(target)).status).toBe(200)
      expect(origin.requests.map(({ url, headers }) => [url, headers.host])).toEqual([
        [forwarded, `127.0.0.1:${origin.port}`],
      ])
    })

    test.each([
      '//evil.test/x',
      '/\\evil.test/x',
      '/orders/..%2f..%2fadmin',
      '/orders/%2e%2e/%2e%2e/admin',
      '/../admin',
      '/orders/../../admin',
      '/%2561dmin',
      '/admin;/x',
      '/admin%00',
      '/%zz',
    ])('%s reaches no origin [S50, S57]', async (target) => {
      expect((await get(target)).status).toBe(400)
      expect(origin.requests).toHaveLength(0)
    })

    test.each(['a/b?c', 'h?x', 'u@h#', 'h1, h2', 'evil.test/..'])(
      'the Host %j reaches no origin, or does not change the path [S57]',
      async (host) => {
        const request = `GET /orders HTTP/1.1\r\nHost: ${host}\r\n\r\n`
        expect((await exchange(gateway.port, request)).status).toBe(400)
        expect(origin.requests).toHaveLength(0)
      },
    )

    test('more headers than production accepts reach no origin [S21]', async () => {
      const many = Array.from({ length: 501 }, (_, at) => `X-${at}: 1`)
      expect((await get('/orders', ...many)).status).toBeGreaterThanOrEqual(400)
      const large = Array.from({ length: 40 }, (_, at) => `X-${at}: ${'a'.repeat(4_000)}`)
      expect((await get('/orders', ...large)).status).toBeGreaterThanOrEqual(400)
      expect(origin.requests).toHaveLength(0)
    })
  })

  /** Members of a list header, in order, whether they came in one field or in several. */
  const membersOf = (head: string, name: string) =>
    [...head.matchAll(new RegExp(`^${name}: (.*)$`, 'gim'))].flatMap(([, list = '']) =>
      list.trim().split(/, */),
    )

  describe('the headers that the client receives', () => {
    test('keep three cookies separate and hide the infrastructure [S60]', async () => {
      const headers = {
        'Set-Cookie': ['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2', 'c=3'],
        Server: 'nginx/1.2',
        'X-Powered-By': 'PHP/5',
        Via: '1.1 inner',
        'Access-Control-Allow-Origin': '*',
        RateLimit: '"theirs";r=1;t=1',
        'X-Request-Id': 'theirs',
        'X-Auth-Subject': 'leaked',
        Connection: 'keep-alive, X-Hop',
        'X-Hop': '1',
        'X-Kept': '1',
      }
      const reply = await get('/orders', replying({ headers }))
      expect(reply.headers.match(/(?<=^set-cookie: ).*$/gim)).toEqual([
        'a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
        'b=2',
        'c=3',
      ])
      expect(reply.headers).not.toMatch(/^(?:server|x-powered-by|via|access-control|ratelimit)/im)
      expect(reply.headers).not.toMatch(/theirs|leaked|x-hop/i)
      expect(reply.headers).toMatch(/^x-kept: 1$/im)
      expect(reply.headers).toMatch(/^x-content-type-options: nosniff$/im)
      expect(reply.headers.match(/^x-request-id: [0-9a-f-]{36}$/gim)).toHaveLength(1)
    })

    test('mark a response to a known caller as private [S61]', async () => {
      const headers = {
        'Cache-Control': 'public, s-maxage=600',
        'CDN-Cache-Control': 'max-age=600',
      }
      for (const method of ['HEAD', 'GET']) {
        const reply = await send(method, '/orders', replying({ headers }), asAlice)
        expect(reply.headers).toMatch(/^cache-control: private$/im)
        expect(reply.headers).toMatch(/^vary: authorization$/im)
        expect(reply.headers).not.toMatch(/s-maxage|cdn-cache/i)
      }
    })

    test.each([
      [undefined, ['Authorization']],
      ['Accept-Encoding', ['Accept-Encoding', 'Authorization']],
      ['accept, AUTHORIZATION', ['accept', 'AUTHORIZATION']],
      ['X-Authorization', ['X-Authorization', 'Authorization']],
      [
        ['Cookie', 'Origin'],
        ['Cookie', 'Origin', 'Authorization'],
      ],
      ['*', ['*']],
      ['Accept, *', ['Accept', '*']],
    ])(
      'a cacheable response to an anonymous caller with Vary %j varies by %j [S61]',
      async (vary, by) => {
        const caching = {
          'Cache-Control': 'public, s-maxage=600',
          'CDN-Cache-Control': 'max-age=600',
        }
        const headers = { ...caching, ...(vary !== undefined && { Vary: vary }) }
        for (const method of ['HEAD', 'GET']) {
          const reply = await send(method, '/orders', replying({ headers }))
          expect(reply.headers).toMatch(/^cache-control: public, s-maxage=600$/im)
          expect(reply.headers).toMatch(/^cdn-cache-control: max-age=600$/im)
          expect(membersOf(reply.headers, 'vary')).toEqual(by)
        }
      },
    )

    test.each([
      [204, {}],
      [301, { Location: '/x' }],
      [304, { ETag: '"a"' }],
      [404, { 'Cache-Control': 'public, max-age=60' }],
      [500, {}],
    ])(
      'a %d response to an anonymous caller varies by Authorization [S61]',
      async (status, headers) => {
        const reply = await get('/orders', replying({ status, headers }))
        expect(reply.status).toBe(status)
        expect(membersOf(reply.headers, 'vary')).toEqual(['Authorization'])
      },
    )

    test("Vary is set again if Connection removes the origin's field [S61]", async () => {
      const headers = { Connection: 'keep-alive, vary', Vary: 'Accept', 'Cache-Control': 'public' }
      const reply = await get('/orders', replying({ headers }))
      expect(membersOf(reply.headers, 'vary')).toEqual(['Authorization'])
    })

    test('two callers of one URL make two requests to the origin [S61]', async () => {
      const cacheable = replying({ headers: { 'Cache-Control': 'public, max-age=600' } })
      await get('/orders', cacheable, asAlice)
      await get('/orders', cacheable, asAlice.replaceAll('alice', 'bob'))
      const callers = origin.requests.map(({ headers }) => headers['x-auth-subject'])
      expect(callers).toEqual(['alice', 'bob'])
    })

    test('a redirect is forwarded to the client, not followed [S58]', async () => {
      const redirect = { status: 307, headers: { Location: `http://127.0.0.1:${origin.port}/x` } }
      const reply = await get(
        '/orders',
        replying(redirect),
        'Authorization: Bearer secret',
        asAlice,
      )
      expect(reply.status).toBe(307)
      expect(reply.headers).toMatch(/^location: http:/im)
      expect(origin.requests).toHaveLength(1)
    })

    test.each([400, 401, 404, 418, 429, 500, 503])(
      "the origin's own %d is forwarded after one call [R23]",
      async (status) => {
        const reply = await send('DELETE', '/orders/1', replying({ status }))
        expect([reply.status, reply.body]).toEqual([status, 'from the origin'])
        expect(origin.requests).toHaveLength(1)
      },
    )
  })
})
