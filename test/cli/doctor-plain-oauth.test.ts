/** Doctor checks a provider of plain OAuth 2.0, with a stand-in that answers as GitHub documents. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { checkSignIn } from '../../cli/doctor/sign-in.ts'
import { checkKeySets } from '../../cli/doctor/upstreams.ts'
import { keysOf } from '../../cli/idp/keys.ts'
import { parseConfig } from '../../src/parts.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey } from '../harness/issuer.ts'

const CLIENT = { id: 'Iv1.8a61f9b3a7aba766', secret: 'never shown' }
const KEY = { ...(await createKey('client')).privateJwk, alg: 'ES256' }
const CALLBACK = 'https://gateway.example/oauth/callback'

let server: TestServer
let github: {
  callback: string
  status: Record<string, number>
  requests: string[]
}
beforeAll(async () => {
  server = await startHttpServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', server.url)
    github.requests.push(`${request.method} ${pathname}`)
    let body = ''
    for await (const chunk of request) body += chunk
    const form = new URLSearchParams(body)
    const set = github.status[pathname]
    if (set !== undefined) return response.writeHead(set).end('{"message":"as configured"}')
    const isKnown = (id: string | null) => id === CLIENT.id
    switch (pathname) {
      case '/login/oauth/authorize':
        return response
          .writeHead(isKnown(searchParams.get('client_id')) ? 302 : 404, { location: '/login' })
          .end()
      case '/login/oauth/access_token': {
        if (!isKnown(form.get('client_id')))
          return response.writeHead(404).end('{"error":"Not Found"}')
        const error =
          form.get('client_secret') !== CLIENT.secret
            ? 'incorrect_client_credentials'
            : form.get('redirect_uri') !== github.callback
              ? 'redirect_uri_mismatch'
              : 'bad_verification_code'
        return response.end(JSON.stringify({ error, error_description: 'not shown' }))
      }
      case '/api/v3/user':
      case '/api/v3/user/emails':
        return response.writeHead(401).end('{"message":"Requires authentication"}')
      default:
        return response.writeHead(404).end('{"message":"Not Found"}')
    }
  })
})
afterAll(() => server?.close())
beforeEach(() => {
  github = { callback: CALLBACK, status: {}, requests: [] }
})

const configWith = (signIn: object = {}, client: object = {}, entry: object = {}) =>
  parseConfig({
    UPSTASH_REDIS_REST_URL: 'https://redis.example',
    UPSTASH_REDIS_REST_TOKEN: 'x',
    PUBLIC_URL: 'https://gateway.example',
    ORIGIN_URL: 'https://origin.example',
    ISSUERS: JSON.stringify([{ issuer: server.url, audience: 'api', ...entry }]),
    ISSUER_CLIENTS: JSON.stringify([
      {
        issuer: server.url,
        ...{ ...CLIENT, method: 'client_secret_post' },
        ...{ signIn: { name: 'GitHub', preset: 'github', ...signIn }, ...client },
      },
    ]),
  })

async function found(...options: Parameters<typeof configWith>) {
  const findings = await checkSignIn(configWith(...options))
  expect(findings.map(({ check }) => check)).toEqual([`sign-in at ${server.url}`])
  expect(JSON.stringify(findings)).not.toMatch(/never shown|not shown|as configured/)
  return findings[0]
}

test('a good client has no mistake, and the finding names its callback', async () => {
  expect(await found()).toEqual({
    level: 'ok',
    check: `sign-in at ${server.url}`,
    seen: `the provider must accept the redirect URI ${CALLBACK}`,
  })
  expect(github.requests.filter((line) => line.includes('well-known'))).toEqual([])
})

test.each<readonly [string, object, object, RegExp, RegExp]>([
  ['a wrong secret', {}, { secret: 'wrong' }, /refuses the id or the secret/, /`id` and `secret`/],
  ['an unknown client', {}, { id: 'unknown' }, /authorize responds with status 404/, /`id`/],
  [
    'an API at another place',
    { apiUrl: '/elsewhere' },
    {},
    /\/elsewhere\/user responds with status 404/,
    /apiUrl/,
  ],
])('%s is a mistake with a remedy', async (_name, signIn, client, seen, remedy) => {
  const at = 'apiUrl' in signIn ? { apiUrl: `${server.url}${signIn.apiUrl}` } : {}
  expect(await found(at, client)).toEqual({
    level: 'error',
    check: expect.any(String),
    seen: expect.stringMatching(seen),
    remedy: expect.stringMatching(remedy),
  })
})

test.each<readonly [string, number, RegExp]>([
  ['/login/oauth/access_token', 404, /access_token responds with status 404/],
  ['/login/oauth/access_token', 200, /access_token responds with no error to a code/],
  ['/login/oauth/access_token', 502, /access_token responds with status 502/],
  ['/login/oauth/authorize', 404, /authorize responds with status 404/],
  ['/api/v3/user', 404, /user responds with status 404/],
  ['/api/v3/user/emails', 404, /emails responds with status 404/],
  ['/api/v3/user', 200, /user responds with status 200 without an access token/],
])('%s with status %i is a mistake', async (path, status, seen) => {
  github.status = { [path]: status }
  expect(await found()).toMatchObject({ level: 'error', seen: expect.stringMatching(seen) })
})

test('a callback that the provider does not accept is a mistake', async () => {
  github.callback = 'https://gateway.example/other'
  expect(await found()).toMatchObject({
    level: 'error',
    seen: expect.stringContaining(`does not accept the redirect URI ${CALLBACK}`),
  })
})

test('an exhausted limit of the API is no mistake: the endpoint is there', async () => {
  github.status = { '/api/v3/user': 403, '/api/v3/user/emails': 429 }
  expect(await found()).toMatchObject({ level: 'ok' })
})

test('settings that a gateway would refuse are a mistake', async () => {
  expect(await found({ preset: 'gitlab' })).toMatchObject({
    level: 'error',
    seen: expect.stringContaining('preset'),
  })
  expect(await found({}, { secret: undefined, method: undefined, key: KEY })).toMatchObject({
    level: 'error',
    seen: expect.stringContaining('GitHub does not accept keys of clients'),
  })
  expect(github.requests).toEqual([])
})

test('an issuer that verifies its tokens itself needs no keys, except for its ID tokens', async () => {
  const levels = async (form: string, client: object) => {
    const findings = await checkKeySets(configWith({}, client, { introspection: { form } }))
    return findings.map(({ level }) => level)
  }
  const noSignIn = { signIn: undefined }
  expect(await levels('jwt', noSignIn)).toEqual(['ok'])
  expect(github.requests).toEqual([])
  const opaque = { introspection: { form: 'opaque' } }
  expect(await checkKeySets(configWith({}, noSignIn, opaque))).toEqual([
    {
      level: 'warning',
      check: `key set of ${server.url}`,
      seen: expect.stringMatching(/its opaque tokens need no keys, but its JWTs get 503$/),
      remedy: expect.stringContaining('if the provider has no key set, set `"keySet": "none"`'),
    },
  ])
  expect(await levels('jwt', { signIn: { name: 'OpenID' } })).toEqual(['error'])
})

test('keys are not looked for at a provider that has none, and named ones are checked', async () => {
  expect(await checkKeySets(configWith())).toEqual([
    {
      level: 'ok',
      check: `key set of ${server.url}`,
      seen: 'none: a JWT that names this issuer is refused',
    },
  ])
  const none = configWith({}, { signIn: undefined }, { introspection: {}, keySet: 'none' })
  expect(await checkKeySets(none)).toMatchObject([{ level: 'ok' }])
  const [entry] = none.issuers
  expect(entry && (await keysOf(entry)).checks).toMatchObject([
    { check: 'key set', level: 'error', mistake: expect.stringContaining('keySet') },
  ])
  expect(github.requests).toEqual([])
  const named = await checkKeySets(configWith({}, {}, { jwksUri: `${server.url}/keys` }))
  expect(named).toMatchObject([{ level: 'error' }])
})
