/** The metadata of the gateway and of its paths as protected resources (RFC 9728). */
import type { RequestListener } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { introspection } from '../../../src/features/introspection/index.ts'
import { mcp } from '../../../src/features/mcp/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'

const MEMBERS = {
  jwks_uri: `${PUBLIC_URL}/.well-known/jwks.json`,
  bearer_methods_supported: ['header'],
  dpop_signing_alg_values_supported: ['ES256', 'Ed25519', 'EdDSA', 'RS256', 'PS256'],
}

const ISSUER_CLIENTS = JSON.stringify([
  { issuer: ISSUER, id: 'gateway', secret: 's'.repeat(32), signIn: { name: 'Example' } },
])
const GITHUB = 'https://github.com'
const GITHUB_CLIENT = {
  ...{ issuer: GITHUB, id: 'gateway', secret: 's'.repeat(32) },
  signIn: { name: 'GitHub', preset: 'github' },
}
const signsIn = (features: readonly Feature[]) => features.some(({ name }) => name === 'signIn')

let started: Awaited<ReturnType<typeof startGateway>>
beforeAll(async () => {
  started = await startGateway({ signs: true, origin: answerAsOrigin })
})
afterAll(() => started?.close())

const BYTES = Buffer.from([0xff, 0x00, 0x80, 0xfe])

/** Has documents of its own: `tagged`, of which it sends a part, and `bare`. */
const answerAsOrigin: RequestListener = ({ url, headers: { range } }, response) => {
  const kind = url?.split('/').at(-1)
  if (kind !== 'tagged' && kind !== 'bare') return void response.end('[]')
  if (kind === 'tagged') response.setHeader('ETag', '"1"')
  if (range === undefined) return void response.end(BYTES)
  response.writeHead(206, { 'Content-Range': 'bytes 0-1/4' }).end(BYTES.subarray(0, 2))
}

/** `bound`: all of its routes require proofs. */
function metadataOf(features: readonly Feature[], bound = false, variables = {}) {
  const policy = definePolicy({
    roles: { reader: ['accounts:read', 'payments:write', 'mcp:use'] },
    limits: {},
    features: [...features],
    routes: [
      { method: 'GET', path: '/ping', anonymous: true, limits: [] },
      { method: 'GET', path: '/accounts/:id', permission: 'accounts:read', dpop: true },
      { method: 'GET', path: '/accounts', permission: 'accounts:read', dpop: true },
      { method: 'POST', path: '/payments/new', permission: 'payments:write', dpop: true },
      ...(bound
        ? []
        : [
            { method: 'GET', path: '/payments', permission: 'payments:write' } as const,
            ...mcp({ path: '/mcp', permission: 'mcp:use', dpop: true }),
          ]),
    ],
  })
  const app = started.isolate(policy, {
    ...(signsIn(features) && { ISSUER_CLIENTS }),
    ...variables,
  })
  return async (path = '') => {
    const response = await app.request(`${PUBLIC_URL}/.well-known/oauth-protected-resource${path}`)
    const body = await response.json()
    return response.status === 200 ? (body as object) : response.status
  }
}

const CODE = () => [signIn(), authorizationCode()]

describe('metadata of a path', () => {
  test('it names the resource, its servers in the order of use, its scopes, and required proofs', async () => {
    const read = metadataOf([authorizationServer(), ...CODE()])
    const members = { ...MEMBERS, authorization_servers: [PUBLIC_URL, ISSUER] }
    const accounts = {
      resource: `${PUBLIC_URL}/accounts`,
      ...members,
      scopes_supported: ['accounts:read'],
      dpop_bound_access_tokens_required: true,
    }
    expect(await read('/accounts')).toEqual(accounts)
    expect(JSON.stringify(await read('/accounts'))).toBe(JSON.stringify(await read('/accounts')))
    expect(await read('/payments/new')).toMatchObject({ dpop_bound_access_tokens_required: true })
    // One of its routes accepts a bearer token.
    expect(await read('/payments')).toMatchObject({ dpop_bound_access_tokens_required: false })
    expect(await read()).toEqual({
      resource: PUBLIC_URL,
      ...members,
      dpop_bound_access_tokens_required: false,
    })
    expect(await read('/mcp')).toMatchObject({
      resource: `${PUBLIC_URL}/mcp`,
      authorization_servers: [PUBLIC_URL, ISSUER],
      scopes_supported: ['mcp:use'],
      dpop_bound_access_tokens_required: true,
    })
  })

  test('a path without a route has none, and neither has another spelling', async () => {
    const read = metadataOf([authorizationServer()])
    for (const path of ['/acc', '/accounts/', '/accounts/7', '/'])
      expect([path, await read(path)]).toEqual([path, 404])
    for (const path of ['//accounts', '/%61ccounts'])
      expect([path, await read(path)]).toEqual([path, 400])
    expect(await metadataOf([])('/accounts')).toBe(404)
  })

  test('without a login at the gateway, its own tokens come last', async () => {
    const read = metadataOf([authorizationServer()])
    for (const path of ['', '/accounts'])
      expect(await read(path)).toMatchObject({ authorization_servers: [ISSUER, PUBLIC_URL] })
  })
})

test('an origin keeps its documents that no path of the gateway has, or that a route is written for', async () => {
  const route = { method: 'GET', anonymous: true, limits: [] } as const
  const at = '/.well-known/oauth-protected-resource'
  const policy = definePolicy({
    roles: { reader: ['notes:read'] },
    limits: {},
    features: [authorizationServer()],
    routes: [
      { ...route, path: `${at}/upstream` },
      { ...route, path: `${at}/tools/:name` },
      { method: 'GET', path: '/tools/search', permission: 'notes:read' },
      { method: 'GET', path: '/notes', permission: 'notes:read' },
      { ...route, path: '/*' },
    ],
  })
  const app = started.isolate(policy)
  const sourceOf = async (path: string) => {
    const body = (await (await app.request(PUBLIC_URL + at + path)).json()) as object
    return 'resource' in body ? 'gateway' : 'origin'
  }
  for (const path of ['/upstream', '/tools/search', '/other'])
    expect([path, await sourceOf(path)]).toEqual([path, 'origin'])
  for (const path of ['', '/notes']) expect([path, await sourceOf(path)]).toEqual([path, 'gateway'])
})

test.each(['isolate', 'Node'] as const)(
  'an origin keeps its tags and bytes on %s',
  async (runtime) => {
    const policy = definePolicy({
      roles: {},
      limits: {},
      features: [authorizationServer()],
      routes: [{ method: 'GET', path: '/*', anonymous: true, limits: [] }],
    })
    const onNode =
      runtime === 'Node'
        ? await startGateway({ runtime, policy, signs: true, origin: answerAsOrigin })
        : undefined
    const app = started.isolate(policy)
    const send = (path: string, headers: Record<string, string>) =>
      onNode
        ? fetch(onNode.url + path, { headers })
        : app.request(`https://gateway.test${path}`, { headers })
    const at = '/.well-known/oauth-protected-resource'
    for (const [kind, etag] of [
      ['tagged', '"1"'],
      ['bare', null],
    ] as const)
      for (const [range, status, length] of [
        [{}, 200, 4],
        [{ Range: 'bytes=0-1' }, 206, 2],
      ] as const) {
        const response = await send(`${at}/${kind}`, { ...range, 'If-None-Match': '*' })
        expect([kind, response.status, response.headers.get('ETag')]).toEqual([kind, status, etag])
        const bytes = Buffer.from(await response.arrayBuffer())
        expect(bytes.equals(BYTES.subarray(0, length))).toBe(true)
      }
    const own = await send(at, {})
    const known = { 'If-None-Match': own.headers.get('ETag') ?? '' }
    expect([own.status, (await send(at, known)).status]).toEqual([200, 304])
    await onNode?.close()
  },
)

test('a gateway whose routes all require proofs says so', async () => {
  for (const features of [[], [authorizationServer()]])
    expect(await metadataOf(features, true)()).toMatchObject({
      dpop_bound_access_tokens_required: true,
    })
})

describe('an issuer whose tokens the gateway never accepts', () => {
  const GITHUB_USERS = { issuer: GITHUB, audience: PUBLIC_URL }
  const entries = (other: object) =>
    JSON.stringify([
      { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [started.key.publicJwk] } },
      other,
    ])
  const paths = ['', '/accounts', '/mcp']

  test.each<readonly [string, readonly Feature[], readonly string[]]>([
    // It signs assertions, but no client gets a token of it.
    ['no feature', [], [ISSUER]],
    ['a token endpoint', [authorizationServer()], [ISSUER, PUBLIC_URL]],
    ['a login for clients', [authorizationServer(), authorizationCode()], [PUBLIC_URL, ISSUER]],
  ])('is no authorization server, with %s', async (_name, features, servers) => {
    const read = metadataOf([signIn(), ...features], false, {
      ISSUERS: entries(GITHUB_USERS),
      ISSUER_CLIENTS: JSON.stringify([GITHUB_CLIENT]),
    })
    for (const path of paths) {
      if (path === '/accounts' && features.length === 0) continue
      const { authorization_servers: named } = (await read(path)) as Record<string, string[]>
      // Without its own login, the gateway is no server for clients of an MCP server.
      const isOwn = path !== '/mcp' || servers[0] === PUBLIC_URL
      expect([path, named]).toEqual([path, isOwn ? servers : [ISSUER]])
    }
  })

  test('nor is a gateway that signs and has no authorization server, if there is no other', async () => {
    const read = metadataOf([], false, { ISSUERS: '[]' })
    for (const path of ['', '/mcp']) {
      const document = await read(path)
      expect(document).toMatchObject({ resource: PUBLIC_URL + path })
      expect(document).not.toHaveProperty('authorization_servers')
    }
  })

  test('is one if its opaque tokens are verified by a call', async () => {
    const called = { ...GITHUB_USERS, keySet: 'none', introspection: {} }
    const read = metadataOf([introspection()], false, {
      ISSUERS: entries(called),
      ISSUER_CLIENTS: JSON.stringify([{ ...GITHUB_CLIENT, signIn: undefined }]),
    })
    expect(await read()).toMatchObject({
      authorization_servers: expect.arrayContaining([ISSUER, GITHUB]),
    })
  })
})

test('with the profile FAPI 2.0, the only server is the gateway, and its tokens are bound', async () => {
  const read = metadataOf([authorizationServer({ profile: 'fapi2' }), ...CODE()])
  for (const path of ['', '/payments', '/accounts'])
    expect(await read(path)).toMatchObject({
      authorization_servers: [PUBLIC_URL],
      dpop_bound_access_tokens_required: true,
    })
})
