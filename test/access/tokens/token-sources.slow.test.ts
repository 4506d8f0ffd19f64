/** Tokens in headers and cookies, from outside: a gateway, its origin and its Redis. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { openApiRoutes } from '../../../src/features/openapi/routes.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { metricsCall } from '../../../src/routes/admin/metrics.ts'
import { wellKnownRoutes } from '../../../src/routes/well-known.ts'
import type { TokenSource } from '../../../src/validators/token-source.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { headersOf, startHttpOrigin } from '../../origin/origin-server.ts'
import { RUNTIMES } from '../../origin/runtimes.ts'
import { exchange } from '../../origin/wire.ts'
import type { Running } from '../../origin/workerd.ts'
import type { Reasons } from './sources-gateway.ts'

const PUBLIC_URL = 'https://gateway.test'
const ACCESS = 'https://team.cloudflareaccess.com'
const WEB = 'https://web.test'
const COOKIE = '__Host-token'
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
const HANDSHAKE = ['Upgrade: websocket', 'Connection: Upgrade', KEY, 'Sec-WebSocket-Version: 13']
const SAME_ORIGIN = 'Sec-Fetch-Site: same-origin'

describe.each(RUNTIMES)('on $name [S75]', ({ name, start }) => {
  let redis: TestRedis
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let gateway: Running
  /** A token of the issuer without configured sources, of Access, and of the issuer with a cookie. */
  let plain: string
  let access: string
  let web: string
  let apiKey: string

  beforeAll(async () => {
    redis = await startTestRedis()
    await redis.direct.flushall()
    const key = await createKey('idp')
    origin = await startHttpOrigin((request, response) => {
      const isPublic = request.url === '/public'
      response.setHeader('Cache-Control', 'public, max-age=60')
      response.end(isPublic ? 'public' : String(request.headers['x-auth-subject']))
    })
    const jwks = { keys: [key.publicJwk] }
    const vars = {
      ...redisVars(redis),
      PUBLIC_URL,
      ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks },
        {
          preset: 'cloudflare-access',
          issuer: ACCESS,
          audience: AUDIENCE,
          jwks,
          algorithms: ['ES256'],
        },
        {
          issuer: WEB,
          audience: AUDIENCE,
          jwks,
          tokenSources: [{ cookie: COOKIE, origins: ['https://app.test'] }],
        },
      ]),
    }
    gateway = await start({ entry: 'test/access/tokens/sources-gateway.ts', vars })
    plain = await mint(key, { claims: { sub: 'alice' } })
    access = await mint(key, {
      claims: { iss: ACCESS, sub: 'bob', type: 'app', custom: { groups: ['reader'] } },
      header: { typ: 'JWT' },
    })
    web = await mint(key, { claims: { iss: WEB, sub: 'carol' } })
    apiKey = newApiKey()
    const references = createReferenceStore(createRedisRest({ ...redis, timeoutMs: 20_000 }))
    await references.put(await credentialHash(apiKey), {
      kind: 'api_key',
      tokenId: crypto.randomUUID(),
      tokenIssuer: PUBLIC_URL,
      issuer: PUBLIC_URL,
      subject: 'dave',
      roles: ['reader'],
      scopes: [],
      audiences: [PUBLIC_URL],
      issuedAtSeconds: Math.floor(Date.now() / 1000),
      expiresAtSeconds: null,
    })
  })
  afterAll(async () => {
    await Promise.all([gateway?.stop(), origin?.close()])
    await redis?.close()
  })
  beforeEach(() => {
    origin.requests.length = 0
  })

  const send = (line: string, ...headers: string[]) =>
    exchange(
      gateway.port,
      `${[`${line} HTTP/1.1`, 'Host: gateway.test', 'Content-Length: 0', ...headers].join('\r\n')}\r\n\r\n`,
    )

  const bearer = (token: string) => `Authorization: Bearer ${token}`
  const assertion = (token: string) => `Cf-Access-Jwt-Assertion: ${token}`
  const cookie = (token: string) => `Cookie: ${COOKIE}=${token}`

  /** Returns the reason of the last audit event. */
  async function lastReason(): Promise<string | undefined> {
    const response = await fetch(`http://127.0.0.1:${gateway.port}/read-here`)
    return ((await response.json()) as Reasons).at(-1)?.reason
  }

  /** Sends a request, and expects that neither the origin nor Redis was called for it. */
  async function refused(line: string, ...headers: string[]) {
    const callsBefore = redis.calls()
    const { status, body, headers: head } = await send(line, ...headers)
    const reason = await lastReason()
    expect([origin.requests.length, redis.calls() - callsBefore]).toEqual([0, 0])
    return { status, code: JSON.parse(body).code, reason, head }
  }

  describe('a token', () => {
    test('is read from the source that its issuer names, and identifies its caller', async () => {
      expect(await send('GET /orders', bearer(plain))).toMatchObject({ status: 200, body: 'alice' })
      expect(await send('GET /orders', assertion(access))).toMatchObject({
        status: 200,
        body: 'bob',
      })
      expect(await send('GET /orders', cookie(web))).toMatchObject({ status: 200, body: 'carol' })
      expect(await send('GET /orders', `x-api-key: ${apiKey}`)).toMatchObject({ body: 'dave' })
      expect(await send('GET /orders', bearer(apiKey))).toMatchObject({ body: 'dave' })
    })

    test('is refused in the source of another issuer, first and when it is cached [S27]', async () => {
      const rows = [
        ['Authorization', bearer(access)],
        ['Authorization', bearer(web)],
        ['the header of Access', assertion(plain)],
        ['the header of Access', assertion(web)],
        ['the cookie', cookie(plain)],
        ['the cookie', cookie(access)],
        ['the header of API keys', `X-API-Key: ${plain}`],
      ] as const
      for (const [where, header] of [...rows, ...rows]) {
        const { status, code, reason } = await refused('GET /orders', header)
        expect([where, status, code, reason]).toEqual([
          where,
          401,
          'invalid_token',
          'token_rejected:source',
        ])
      }
    })

    test('of the gateway itself is refused in a source that its policy does not name', async () => {
      for (const header of [assertion(apiKey), cookie(apiKey)])
        expect(await refused('GET /orders', header)).toMatchObject({
          status: 401,
          code: 'invalid_token',
        })
    })

    test('in a header has no scheme, and is a single token', async () => {
      for (const text of [`Bearer ${access}`, '', 'x.y.z', `${access} `.repeat(2)])
        expect(await refused('GET /orders', assertion(text))).toMatchObject({
          status: 401,
          code: 'invalid_token',
        })
    })

    test('must be valid on a route for anonymous callers too', async () => {
      expect(await send('GET /public', cookie(web))).toMatchObject({ status: 200 })
      expect(await refusedOnPublic(cookie(`${web}x`))).toBe(401)
      expect(await refusedOnPublic(assertion('x'))).toBe(401)
    })
    const refusedOnPublic = async (header: string) => {
      origin.requests.length = 0
      return (await refused('GET /public', header)).status
    }

    test('in a query parameter is not a credential [S27]', async () => {
      const { status, code } = await refused(`GET /orders?access_token=${plain}`)
      expect([status, code]).toEqual([401, 'missing_token'])
    })

    test('in a cookie or header of another name is not a credential [S27]', async () => {
      const others = [`Cookie: token=${web}; __host-token=${web}`, `X-Token: ${access}`]
      expect(await refused('GET /orders', ...others)).toMatchObject({ code: 'missing_token' })
      expect(await send('GET /orders', bearer(plain), ...others)).toMatchObject({ body: 'alice' })
    })
  })

  describe('two credentials', () => {
    test.each([
      ['Authorization and a header', () => [bearer(plain), assertion(access)], 'sources'],
      ['Authorization and a cookie', () => [bearer(plain), cookie(web)], 'sources'],
      ['a header and a cookie', () => [assertion(access), cookie(web)], 'sources'],
      ['two headers', () => [assertion(access), `X-API-Key: ${apiKey}`], 'sources'],
      ['the same token twice', () => [bearer(plain), assertion(plain)], 'sources'],
      [
        'another scheme and a header',
        () => ['Authorization: Basic YTpi', assertion(access)],
        'sources',
      ],
      ['a header twice', () => [assertion(access), assertion(access)], 'header'],
      ['a cookie twice', () => [`Cookie: ${COOKIE}=${web}; ${COOKIE}=${web}`], 'cookie'],
      ['a cookie in two fields', () => [cookie(web), cookie(web)], 'cookie'],
      ['a cookie behind a comma', () => [`Cookie: a=1,${COOKIE}=${web}`], 'cookie'],
      ['a cookie with a space', () => [`Cookie: ${COOKIE} =${web}`], 'cookie'],
    ])('are refused before Redis and the origin: %s', async (_, headers, check) => {
      for (const line of ['GET /orders', 'POST /orders', 'GET /public']) {
        const { status, code, reason, head } = await refused(line, ...headers())
        expect([status, code, reason]).toEqual([
          400,
          'ambiguous_credentials',
          `ambiguous_credentials:${check}`,
        ])
        expect(head).toMatch(/^www-authenticate: Bearer .*error="invalid_request"/im)
      }
    })

    // The platform of Workers joins fields with commas, which cookies may contain. Node joins those of
    // `Cookie` as RFC 9113 section 8.2.3 says.
    test('are not a cookie in the second of two fields, where the runtime joins them correctly', async () => {
      const headers = [SAME_ORIGIN, 'Cookie: a=1', cookie(web)]
      if (name === 'Node')
        expect(await send('GET /orders', ...headers)).toMatchObject({ status: 200, body: 'carol' })
      else expect(await refused('GET /orders', ...headers)).toMatchObject({ status: 400 })
    })

    test('in a repeated Authorization are ambiguous', async () => {
      expect(await refused('GET /orders', bearer(plain), bearer(plain))).toMatchObject({
        status: 400,
        code: 'ambiguous_credentials',
      })
    })
  })

  describe('a cookie', () => {
    const ACCEPTED = [
      [SAME_ORIGIN],
      [SAME_ORIGIN, 'Origin: null'],
      [`Origin: ${PUBLIC_URL}`],
      ['Origin: https://app.test'],
      ['Sec-Fetch-Site: same-site', 'Origin: https://app.test'],
    ]
    const REFUSED: readonly (readonly [string, readonly string[]])[] = [
      ['origin', []],
      ['origin', ['Origin: null']],
      ['origin', ['Origin: https://evil.test']],
      ['origin', ['Origin: http://gateway.test']],
      ['origin', ['Origin: https://gateway.test.evil.test']],
      ['origin', [`Origin: ${PUBLIC_URL}`, `Origin: ${PUBLIC_URL}`]],
      ['origin', ['Referer: https://gateway.test/']],
      ['sec_fetch_site', ['Sec-Fetch-Site: cross-site', `Origin: ${PUBLIC_URL}`]],
      ['sec_fetch_site', ['Sec-Fetch-Site: same-site', 'Origin: https://sub.gateway.test']],
      ['sec_fetch_site', ['Sec-Fetch-Site: none']],
      ['sec_fetch_site', [SAME_ORIGIN, 'Sec-Fetch-Site: cross-site']],
      ['sec_fetch_site', ['Sec-Fetch-Site:', `Origin: ${PUBLIC_URL}`]],
    ]

    test('is accepted with an unsafe method from pages of the same origin and of listed ones', async () => {
      for (const headers of ACCEPTED) {
        for (const line of ['POST /orders', 'DELETE /orders'])
          expect([headers, (await send(line, cookie(web), ...headers)).status]).toEqual([
            headers,
            200,
          ])
      }
    })

    test.each(REFUSED)('is refused with an unsafe method (%s): %j', async (check, headers) => {
      for (const line of [
        'POST /orders',
        'DELETE /orders',
        'POST /public',
        'POST /-/admin/api-keys',
      ]) {
        const { status, code, reason } = await refused(line, cookie(web), ...headers)
        expect([line, status, code, reason]).toEqual([
          line,
          403,
          'cross_origin_request',
          `cross_origin_request:${check}`,
        ])
      }
    })

    test('is accepted with a safe method from any page', async () => {
      for (const [, headers] of REFUSED) {
        expect((await send('GET /orders', cookie(web), ...headers)).status).toBe(200)
        expect((await send('HEAD /orders', cookie(web), ...headers)).status).toBe(200)
      }
    })

    test('is refused with a WebSocket of another page, even where the route lists its origin', async () => {
      for (const headers of [[], ['Origin: https://evil.test'], ['Sec-Fetch-Site: cross-site']])
        expect(await refused('GET /socket', cookie(web), ...HANDSHAKE, ...headers)).toMatchObject({
          status: 403,
          code: 'cross_origin_request',
        })
    })

    test('opens a WebSocket of a page of the same origin', async () => {
      const headers = [...HANDSHAKE, `Origin: ${PUBLIC_URL}`, SAME_ORIGIN]
      // The origin does not upgrade, and answers as for any other request.
      expect(await send('GET /socket', cookie(web), ...headers)).toMatchObject({ status: 200 })
      expect(origin.requests[0]?.headers.upgrade).toBe('websocket')
    })

    test('does not restrict callers with another source', async () => {
      const headers = ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.test']
      expect((await send('POST /orders', bearer(plain), ...headers)).status).toBe(200)
      expect((await send('POST /orders', `X-API-Key: ${apiKey}`, ...headers)).status).toBe(200)
    })

    test('from which a proxy sets a header is protected too, and other clients are accepted', async () => {
      const forged = REFUSED.filter(([, headers]) => /Origin:|Sec-Fetch/.test(headers.join()))
      expect(forged).toHaveLength(10)
      for (const [check, headers] of forged)
        expect(await refused('POST /orders', assertion(access), ...headers)).toMatchObject({
          status: 403,
          reason: `cross_origin_request:${check}`,
        })
      for (const headers of [[], [SAME_ORIGIN], [`Origin: ${PUBLIC_URL}`]])
        expect((await send('POST /orders', assertion(access), ...headers)).status).toBe(200)
    })

    test('that other pages sent does not lead to a ban or a throttle of its caller', async () => {
      const address = 'CF-Connecting-IP: 192.0.2.7'
      for (let count = 0; count < 30; count += 1) {
        await refused('POST /orders', address, cookie(web), 'Sec-Fetch-Site: cross-site')
        await refused('POST /orders', address, cookie(web), cookie(web))
      }
      expect((await send('POST /orders', address, cookie(web), SAME_ORIGIN)).status).toBe(200)
    })

    test('does not prove possession of a key', async () => {
      const proof = 'DPoP: x.y.z'
      expect(await refused('GET /bound', cookie(web), proof)).toMatchObject({
        status: 401,
        code: 'invalid_dpop_proof',
      })
    })
  })

  describe('the origin', () => {
    const arrived = () => origin.requests.flatMap(headersOf)

    test('receives no token, in no header and with every option of the route [S59]', async () => {
      const requests = [
        ['GET /orders', assertion(access)],
        ['GET /credentials', assertion(access)],
        ['GET /credentials', `X-API-Key: ${apiKey}`],
        ['GET /credentials', cookie(web)],
        ['GET /cookies', cookie(web)],
        ['GET /public', cookie(web)],
      ] as const
      for (const [line, header] of requests) expect((await send(line, header)).status).toBe(200)
      const text = JSON.stringify(arrived())
      for (const secret of [access, apiKey, web]) expect(text).not.toContain(secret)
      expect(arrived().map(([name]) => name)).not.toContain('cookie')
    })

    test.each([
      [`${COOKIE}=TOKEN; a=1; b="x, y"`, 'a=1; b="x, y"'],
      [`a=1; ${COOKIE}=TOKEN`, 'a=1'],
      [`a=1;  b=2;${COOKIE}=TOKEN;c=caf\xc3\xa9;; =x`, 'a=1;  b=2;c=caf\xc3\xa9;; =x'],
      [
        `__host-token=1; x${COOKIE}=2; ${COOKIE}=TOKEN; ${COOKIE}x=3`,
        `__host-token=1; x${COOKIE}=2; ${COOKIE}x=3`,
      ],
      [`CF_Authorization=TOKEN; a=1; ${COOKIE}=TOKEN`, 'a=1'],
    ])('receives the other cookies byte for byte: %s [S68]', async (sent, expected) => {
      const field = sent.replaceAll('TOKEN', web)
      expect((await send('GET /cookies', `Cookie: ${field}`)).status).toBe(200)
      expect(arrived().filter(([name]) => name === 'cookie')).toEqual([['cookie', expected]])
    })
  })

  describe('responses', () => {
    test('to a header or a cookie are not stored by shared caches, and vary by each source', async () => {
      for (const header of [bearer(plain), assertion(access), cookie(web)]) {
        const { headers } = await send('GET /orders', header)
        expect(headers).toMatch(/^cache-control: private, max-age=60\r?$/im)
        expect(varyIn(headers)).toEqual(VARY)
      }
    })

    test('to anonymous callers vary by each source', async () => {
      const { headers } = await send('GET /public')
      expect(headers).toMatch(/^cache-control: public, max-age=60\r?$/im)
      expect(varyIn(headers)).toEqual(VARY)
    })

    const VARY = ['authorization', 'cf-access-jwt-assertion', 'cookie', 'x-api-key']
    const varyIn = (headers: string) =>
      [...headers.matchAll(/^vary: (.*)$/gim)]
        .flatMap(([, value = '']) => value.toLowerCase().trim().split(/,\s*/))
        .sort()
  })

  describe('descriptions', () => {
    const read = async (path: string) => JSON.parse((await send(`GET ${path}`)).body)

    test('a request without credentials gets a challenge with the metadata of the resource', async () => {
      const { status, head } = await refused('GET /orders')
      expect(status).toBe(401)
      expect(head).toMatch(
        /^www-authenticate: Bearer realm="portcullis", resource_metadata="https:/im,
      )
      expect(await read('/.well-known/oauth-protected-resource')).toMatchObject({
        bearer_methods_supported: ['header'],
      })
    })

    test('the metadata names no way to send a bearer token if none is read from Authorization', async () => {
      const bearer_methods_supported = ['header']
      const metadata = async (isAuthorizationRead: boolean) => {
        const sources = { isAuthorizationRead }
        const publicKeys = () => ({ keys: [] })
        const options = { publicUrl: PUBLIC_URL, issuers: [ISSUER], publicKeys, sources }
        const routes = wellKnownRoutes(options, [], [])
        return (await routes.request('/oauth-protected-resource')).json()
      }
      expect(await metadata(true)).toMatchObject({ bearer_methods_supported })
      expect(await metadata(false)).toEqual({
        resource: PUBLIC_URL,
        authorization_servers: [ISSUER],
        jwks_uri: `${PUBLIC_URL}/.well-known/jwks.json`,
      })
    })

    test('the page shows commands with the first source', async () => {
      const page = async (source: TokenSource) => {
        const { body } = await openApiRoutes({
          publicUrl: PUBLIC_URL,
          issuesTokens: false,
          operations: [
            metricsCall({ text: async () => '', metricsAccess: 'operators', now: Date.now })
              .operation,
          ],
          sources: [source],
        }).request('/docs')
        return new Response(body).text()
      }
      expect(await page({ header: 'authorization' })).toContain('Authorization: Bearer $TOKEN')
      expect(await page({ header: 'X-API-Key' })).toContain('-H &quot;X-API-Key: $TOKEN&quot;')
      expect(await page({ cookie: COOKIE })).toContain(`-b &quot;${COOKIE}=$TOKEN&quot;`)
    })

    test('the OpenAPI document has a security scheme for each source', async () => {
      const { components, paths } = await read('/-/openapi.json')
      const description = "An operator's access token."
      expect(components.securitySchemes).toEqual({
        operator: { type: 'http', scheme: 'bearer', description },
        operator2: { type: 'apiKey', in: 'header', name: 'X-API-Key', description },
        operator3: { type: 'apiKey', in: 'header', name: 'Cf-Access-Jwt-Assertion', description },
        operator4: { type: 'apiKey', in: 'cookie', name: COOKIE, description },
      })
      expect(paths['/-/admin/api-keys'].post.security).toEqual(
        ['operator', 'operator2', 'operator3', 'operator4'].map((name) => ({ [name]: [] })),
      )
    })
  })
})
