/** Doctor checks the providers at which users sign in. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnvironment } from '../../cli/doctor/environment.ts'
import { checkSignIn } from '../../cli/doctor/sign-in.ts'
import { parseConfig } from '../../src/parts.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey } from '../harness/issuer.ts'

let server: TestServer
beforeAll(async () => {
  const metadata = (path: string, changes: object = {}) => ({
    issuer: server.url + path,
    authorization_endpoint: `${server.url}/authorize`,
    token_endpoint: `${server.url}/token`,
    ...changes,
  })
  const documents: Record<string, () => object> = {
    '/good': () => metadata('/good', { end_session_endpoint: `${server.url}/logout` }),
    '/plain': () => metadata('/plain', { code_challenge_methods_supported: ['S256', 'plain'] }),
    '/other': () => metadata('/elsewhere'),
    '/machines': () => metadata('/machines', { authorization_endpoint: undefined }),
    '/no-pkce': () => metadata('/no-pkce', { code_challenge_methods_supported: ['plain'] }),
    '/refused': () => metadata('/refused', { token_endpoint: `${server.url}/refuses` }),
  }
  for (const [name, token_endpoint] of [
    ['credentials', () => 'http://u:p@127.0.0.1:1/'],
    ['scheme', () => 'ftp://x.example/'],
    ['script', () => 'javascript:0'],
    ['closed', () => 'http://127.0.0.1:1/?secret=never+shown'],
    ['moved', () => `${server.url}/moves`],
    ['broken', () => `${server.url}/breaks`],
    ['absent', () => `${server.url}/nowhere`],
    ['accepting', () => `${server.url}/accepts`],
  ] as const)
    documents[`/${name}`] = () => metadata(`/${name}`, { token_endpoint: token_endpoint() })
  server = await startHttpServer((request, response) => {
    if (request.url === '/token') return response.writeHead(400).end('{"error":"invalid_grant"}')
    if (request.url === '/accepts') return response.end('{}')
    if (request.url === '/moves')
      return response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()
    if (request.url === '/breaks') return response.writeHead(502).end()
    if (request.url === '/refuses')
      return response.writeHead(401).end('{"error":"invalid_client","error_description":"hush"}')
    const path = request.url?.replace('/.well-known/openid-configuration', '') ?? ''
    const document = documents[path]
    response.writeHead(document === undefined ? 404 : 200)
    return response.end(JSON.stringify(document?.() ?? {}))
  })
})
afterAll(() => server?.close())

async function found(path: string, credential: object = { secret: 'never shown' }) {
  const issuer = server.url + path
  const config = parseConfig({
    UPSTASH_REDIS_REST_URL: 'https://redis.example',
    UPSTASH_REDIS_REST_TOKEN: 'x',
    PUBLIC_URL: 'https://gateway.example',
    ORIGIN_URL: 'https://origin.example',
    ISSUERS: JSON.stringify([{ issuer, audience: 'api' }]),
    ISSUER_CLIENTS: JSON.stringify([
      { issuer, id: 'gateway', ...credential, signIn: { name: 'x' } },
    ]),
  } as unknown as Parameters<typeof parseConfig>[0])
  const [finding, ...others] = await checkSignIn(config)
  expect(others).toEqual([])
  expect(finding?.check).toBe(`sign-in at ${issuer}`)
  expect(JSON.stringify(finding)).not.toContain('never shown')
  return finding
}

test('names the callback of each of several providers [S89]', async () => {
  const entries = ['/plain', '/good'].map((path) => `${server.url}${path}`)
  const [first, other] = entries
  const seen = async (callback?: string) => {
    const config = parseConfig({
      UPSTASH_REDIS_REST_URL: 'https://redis.example',
      UPSTASH_REDIS_REST_TOKEN: 'x',
      ORIGIN_URL: 'https://origin.example',
      PUBLIC_URL: 'https://gateway.example',
      ISSUERS: JSON.stringify([first, other].map((issuer) => ({ issuer, audience: 'orders' }))),
      ISSUER_CLIENTS: JSON.stringify([
        { issuer: first, id: 'gateway', secret: 's', signIn: { name: 'x', callback } },
        { issuer: other, id: 'gateway', secret: 's', signIn: { name: 'y' } },
      ]),
    } as unknown as Parameters<typeof parseConfig>[0])
    const [finding] = await checkSignIn(config)
    return finding
  }
  expect((await seen())?.seen).toMatch(/oauth\/callback\/127-0-0-1-\d+-plain$/)
  expect(await seen('shared')).toMatchObject({ level: 'warning' })
  expect((await seen('shared'))?.seen).toContain('oauth/callback; it does not name itself')
})

test('names the URIs that the provider must accept', async () => {
  const redirect = 'https://gateway.example/oauth/callback'
  expect(await found('/plain')).toMatchObject({
    level: 'ok',
    seen: `the provider must accept the redirect URI ${redirect}`,
  })
  expect((await found('/good'))?.seen).toMatch(
    / and https:\/\/gateway\.example\/oauth\/signed-out$/,
  )
})

test.each([
  ['/missing', /responds with status 404$/],
  ['/other', /has ".*\/elsewhere", expected ".*\/other"$/],
  ['/machines', /has no authorization_endpoint/],
  ['/no-pkce', /does not list S256/],
  ['/refused', /^the provider refuses the id or the secret of the client \(invalid_client\)$/],
])('metadata at %s is a mistake with a remedy', async (path, seen) => {
  const finding = await found(path)
  expect([finding?.level, finding?.seen]).toEqual(['error', expect.stringMatching(seen)])
  expect(finding?.remedy).toMatch(/\.$/)
})

test.each([
  ['/credentials', /token_endpoint.* has credentials/],
  ['/scheme', /has no token_endpoint with an https URL/],
  ['/script', /has no token_endpoint with an https URL/],
  ['/closed', /^http:\/\/127\.0\.0\.1:1 cannot be reached/],
  ['/moved', /\/moves responds with status 307$/],
  ['/broken', /\/breaks responds with status 502$/],
  ['/absent', /\/nowhere responds with status 404$/],
  ['/accepting', /\/accepts responds with status 200 to a code that does not exist$/],
])('a token endpoint that no login can use is named: %s', async (path, seen) => {
  const finding = await found(path)
  expect([finding?.level, finding?.seen]).toEqual([
    expect.stringMatching(/^(?:error|warning)$/),
    expect.stringMatching(seen),
  ])
  expect(finding?.seen).not.toContain('u:p')
  expect(finding?.remedy).toMatch(/\.$/)
})

test.each([
  ['an expired key', { exp: 1_000_000_000 }],
  ['a key of the future', { nbf: 4_000_000_000 }],
])('%s of the client is a finding, not the end of the command', async (_name, times) => {
  const { privateJwk } = await createKey('client')
  const finding = await found('/plain', { key: { ...privateJwk, ...times } })
  expect(finding).toMatchObject({
    level: 'error',
    seen: expect.stringMatching(/no key of this client signs now/),
    remedy: expect.stringMatching(/ISSUER_CLIENTS/),
  })
})

test.each([
  ['expired', -1, 'error', /no key of ISSUER_CLIENTS signs now/],
  ['expires in two days', 2.5, 'warning', /expires in 2 days/],
  ['expires in eight days', 8.5, 'ok', /1 of them sign now/],
])('a key of a client that %s is named without a call', async (_name, days, level, seen) => {
  const { privateJwk } = await createKey('client')
  const nowMs = Date.now()
  const exp = Math.floor(nowMs / 1_000 + days * 86_400)
  const { findings } = checkEnvironment(
    {
      UPSTASH_REDIS_REST_URL: 'https://redis.example',
      UPSTASH_REDIS_REST_TOKEN: 'x',
      PUBLIC_URL: 'https://gateway.example',
      ORIGIN_URL: 'https://origin.example',
      ISSUERS: JSON.stringify([{ issuer: 'https://idp.example', audience: 'api' }]),
      ISSUER_CLIENTS: JSON.stringify([
        {
          issuer: 'https://idp.example',
          id: 'gateway',
          key: { ...privateJwk, exp },
          signIn: { name: 'x' },
        },
      ]),
    },
    false,
    nowMs,
  )
  const finding = findings.find(({ check }) => check === 'key of the client at https://idp.example')
  expect(finding).toMatchObject({ level, seen: expect.stringMatching(seen) })
})
