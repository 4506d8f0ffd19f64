/** What a client gets later is never wider than what it got first, whatever it requests (RFC 8707). */
import fc from 'fast-check'
import { Hono } from 'hono'
import { decodeJwt, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { principalOfGrant } from '../../../src/access/tokens/access-grant.ts'
import type { GatewayVariables } from '../../../src/middleware/context.ts'
import { requireResource } from '../../../src/middleware/require-resource.ts'
import { completeRoute } from '../../../src/policy/route.ts'
import { ISSUER, mint } from '../../harness/issuer.ts'
import { ACCESS_TOKEN, EXCHANGE, startGateway } from '../authorization-server/gateway.ts'
import { type CodeGateway, MCP, newVerifier, PUBLIC_URL, startCodeGateway } from './code-gateway.ts'

const OTHER_API = 'https://other-api.test/v1'
const PATHS = ['/mcp', '/mcp/books', '/mcp2', '/orders']
/** Spellings of the whole gateway. */
const WHOLE = [PUBLIC_URL, `${PUBLIC_URL}/`, 'HTTPS://Gateway.Test', 'https://gateway.test:443/']

let gateway: CodeGateway
beforeAll(async () => {
  gateway = await startCodeGateway({ identityAssertions: [ISSUER] })
})
afterAll(() => gateway.close())

interface MachineClient {
  readonly client_id: string
  readonly client_secret: string
}

async function machine(
  audiences: readonly string[],
  more: { readonly scopes?: string[]; readonly refresh?: boolean } = {},
): Promise<MachineClient> {
  const { refresh = true, scopes } = more
  const { client, secret = '' } = await gateway.registry.create({
    name: 'service',
    grants: ['client_credentials', EXCHANGE, ...(refresh ? (['refresh_token'] as const) : [])],
    audiences: [...audiences],
    roles: ['clerk'],
    ...(scopes && { scopes }),
  })
  return { client_id: client.id, client_secret: secret }
}

const repeated = (names: readonly string[]) => names.map((name) => ['resource', name])
const send = (pairs: readonly (readonly string[])[]) =>
  gateway.send('/oauth/token', {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(pairs.map((pair) => [...pair])),
  })
const exchange = (by: MachineClient, token: string, more: readonly (readonly string[])[] = []) =>
  send([
    ...Object.entries({
      ...by,
      grant_type: EXCHANGE,
      subject_token: token,
      subject_token_type: ACCESS_TOKEN,
    }),
    ...more,
  ])
const credentials = (by: MachineClient, resources: readonly string[]) =>
  send([...Object.entries({ ...by, grant_type: 'client_credentials' }), ...repeated(resources)])

/** Signs in, allows the client these resources, and returns the answer to the code. */
async function allowed(resources: readonly string[], atCode: readonly string[] = []) {
  const clientId = await gateway.createClient()
  const verifier = newVerifier()
  const cookie = gateway.signIn()
  const params = gateway.requestOf(clientId, verifier, { resource: undefined })
  const query = new URLSearchParams(
    Object.entries(params).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
  for (const resource of resources) query.append('resource', resource)
  const page = await gateway.send(`/oauth/authorize?${query}`, { headers: { cookie } })
  const decided = await gateway.decide(page, cookie)
  const reply = await send([
    ...Object.entries({
      grant_type: 'authorization_code',
      client_id: clientId,
      code: decided.answer.get('code') ?? '',
      code_verifier: verifier,
      redirect_uri: params.redirect_uri ?? '',
    }),
    ...repeated(atCode),
  ])
  return { clientId, reply }
}

/** Returns the paths at which the gateway accepts a token. */
async function reachOf(token: string): Promise<readonly string[]> {
  const replies = await Promise.all(PATHS.map((path) => gateway.call(token, path)))
  return PATHS.filter((_, at) => replies[at]?.status === 200)
}

describe('a token for one path of the gateway [S82]', () => {
  test.each(WHOLE)('is not widened with the resource %s at the code', async (resource) => {
    const before = gateway.originCalls()
    const { reply } = await allowed([MCP], [resource])
    expect([reply.status, reply.body.error]).toEqual([400, 'invalid_target'])
    expect(gateway.originCalls()).toBe(before)
  })

  test.each(WHOLE)('is not widened with the resource %s at a refresh', async (resource) => {
    const { clientId, reply } = await allowed([MCP])
    expect(await reachOf(reply.body.access_token)).toEqual(['/mcp', '/mcp/books'])
    const refresh = [
      ...Object.entries({
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: reply.body.refresh_token,
      }),
    ]
    const wider = await send([...refresh, ['resource', resource]])
    expect([wider.status, wider.body.error]).toEqual([400, 'invalid_target'])
    const same = await send([...refresh, ['resource', MCP]])
    expect(await reachOf(same.body.access_token)).toEqual(['/mcp', '/mcp/books'])
  })

  test.each([[], ...WHOLE.map((name) => [name])])(
    'is not widened by a token exchange with the resource %s',
    async (...resources) => {
      const { reply } = await allowed([MCP])
      for (const audiences of [[PUBLIC_URL], [PUBLIC_URL, MCP], [MCP]]) {
        const wider = await exchange(
          await machine(audiences),
          reply.body.access_token,
          repeated(resources),
        )
        if (resources.length > 0) expect(wider.body.error).toBe('invalid_target')
        else expect(await reachOf(wider.body.access_token)).toEqual(['/mcp', '/mcp/books'])
      }
    },
  )

  test('is not widened by a parameter `audience`, nor to another API or path', async () => {
    const { reply } = await allowed([MCP])
    const by = await machine([PUBLIC_URL, MCP, `${PUBLIC_URL}/mcp2`, OTHER_API])
    for (const [name, value] of [
      ['audience', PUBLIC_URL],
      ['audience', OTHER_API],
      ['resource', OTHER_API],
      ['resource', `${PUBLIC_URL}/mcp2`],
      ['audience', `${PUBLIC_URL}/mcp2`],
    ] as const) {
      const wider = await exchange(by, reply.body.access_token, [[name, value]])
      expect([name, value, wider.body.error]).toEqual([name, value, 'invalid_target'])
    }
  })

  test('may be narrowed to a path below it, and stays there', async () => {
    const { clientId, reply } = await allowed([PUBLIC_URL], [`${PUBLIC_URL}/mcp`])
    expect(await reachOf(reply.body.access_token)).toEqual(['/mcp', '/mcp/books'])
    const by = await machine([PUBLIC_URL])
    const books = [['resource', `${PUBLIC_URL}/mcp/books`]]
    const narrow = await exchange(by, reply.body.access_token, books)
    expect(await reachOf(narrow.body.access_token)).toEqual(['/mcp/books'])
    const wider = await exchange(by, narrow.body.access_token, [['resource', MCP]])
    expect(wider.body.error).toBe('invalid_target')
    // The user has allowed the whole gateway, so that the session still includes it.
    const next = await gateway.refresh(clientId, reply.body.refresh_token)
    expect(await reachOf(next.body.access_token)).toEqual(PATHS)
  })
})

test.each(['HTTPS://Gateway.Test/mcp', 'https://gateway.test:443/mcp'])(
  'the resource %s is the path that it spells, and no wider [S82]',
  async (spelled) => {
    for (const atCode of [[], [spelled], [MCP]]) {
      const { reply } = await allowed([spelled], atCode)
      expect(decodeJwt(reply.body.access_token).aud).toBe(MCP)
      expect(await reachOf(reply.body.access_token)).toEqual(['/mcp', '/mcp/books'])
    }
    const narrow = await allowed([MCP], [`${spelled}/books`])
    expect(await reachOf(narrow.reply.body.access_token)).toEqual(['/mcp/books'])
    for (const wider of [`${spelled}2`, `${spelled}/../orders`, `${spelled}//`, `${spelled}?x`])
      expect((await allowed([MCP], [wider])).reply.body.error, wider).toBe('invalid_target')
  },
)

test.each(WHOLE)(
  'an assertion for one path is not widened with the resource %s [S82]',
  async (name) => {
    const { status, body } = await asserted([MCP], [name])
    expect([status, body.error]).toEqual([400, 'invalid_target'])
    expect(await reachOf((await asserted([MCP])).body.access_token)).toEqual(['/mcp', '/mcp/books'])
  },
)

describe('a client for one path of the gateway [S82]', () => {
  test.each([
    ['no registered audience', undefined],
    ['the path as its audience', [MCP]],
    ['the gateway and the path', [PUBLIC_URL, MCP]],
  ])('gets a token that is valid there and nowhere else, with %s', async (_, audiences) => {
    const by = await machine(audiences ?? [PUBLIC_URL])
    const { body } = await credentials(by, [MCP])
    expect(decodeJwt(body.access_token).aud).toBe(MCP)
    expect(await reachOf(body.access_token)).toEqual(['/mcp', '/mcp/books'])
  })

  test('gets no token for the whole gateway, by default neither', async () => {
    const by = await machine([MCP])
    const { body } = await credentials(by, [])
    expect(await reachOf(body.access_token)).toEqual(['/mcp', '/mcp/books'])
    for (const resource of [...WHOLE, `${PUBLIC_URL}/mcp2`, `${PUBLIC_URL}/orders`])
      expect((await credentials(by, [resource])).body.error).toBe('invalid_target')
  })

  test.each([
    ...[
      '/',
      '//mcp',
      '/mcp/',
      '/mcp//books',
      '/./mcp',
      '/mcp2/../mcp',
      '/%6dcp',
      '/mcp?x',
      '/mcp#x',
    ],
    ...['/nothing', '/mc', '/mcp\\books', '/mcp/books/..', '/MCP', '/mcp;x'],
  ])('gets no token for the resource %s, which is no path with a route', async (path) => {
    if (path === '/') return
    const by = await machine([PUBLIC_URL])
    const { body } = await credentials(by, [PUBLIC_URL + path])
    expect(body.error).toBe('invalid_target')
  })
})

test('a token states the requested resources as its audience, and not the gateway around them [S82]', async () => {
  const resources = [MCP, `${PUBLIC_URL}/mcp2`]
  const { reply } = await allowed(resources)
  expect(decodeJwt(reply.body.access_token).aud).toEqual(resources)
  expect(await reachOf(reply.body.access_token)).toEqual(['/mcp', '/mcp/books', '/mcp2'])
  const plain = await startGateway()
  try {
    const orders = `${PUBLIC_URL}/orders`
    for (const tokenFormat of ['jwt', 'opaque'] as const) {
      const client = await plain.createClient({ roles: ['reader'], tokenFormat })
      const form = { grant_type: 'client_credentials', resource: orders }
      const { access_token: token } = (await plain.token(client, form)).body
      expect((await plain.call(token)).status).toBe(200)
      const resourceServer = await plain.createClient()
      expect((await plain.introspect(resourceServer, token)).body).toMatchObject({
        active: true,
        aud: orders,
      })
    }
    // As an earlier version issued it.
    const member = { sub: 'erin', roles: ['reader'], client_id: 'app' }
    const token = (aud: unknown) => plain.sign({ ...member, aud }, { typ: 'at+jwt' })
    expect((await plain.call(await token([PUBLIC_URL, orders]))).status).toBe(200)
    const before = plain.originCalls()
    for (const aud of [`${PUBLIC_URL}/`, `${PUBLIC_URL}.evil/orders`, `${PUBLIC_URL}/%6frders`, []])
      expect([aud, (await plain.call(await token(aud))).status]).toEqual([aud, 401])
    expect(plain.originCalls()).toBe(before)
  } finally {
    await plain.close()
  }
})

test('a gateway without the authorization endpoint limits a token to its paths, too [S82]', async () => {
  const plain = await startGateway()
  try {
    const client = await plain.createClient({
      roles: ['reader'],
      audiences: [PUBLIC_URL, `${PUBLIC_URL}/reports`],
    })
    const tokenFor = async (resource: string) =>
      (await plain.token(client, { grant_type: 'client_credentials', resource })).body.access_token
    expect((await plain.call(await tokenFor(`${PUBLIC_URL}/orders`))).status).toBe(200)
    const before = plain.originCalls()
    expect((await plain.call(await tokenFor(`${PUBLIC_URL}/reports`))).status).toBe(401)
    expect(plain.originCalls()).toBe(before)
  } finally {
    await plain.close()
  }
})

test('a token for a path is not accepted at the same path of another host [S82]', async () => {
  const app = new Hono<{ Variables: GatewayVariables }>()
  app.onError((error, c) => c.text(String(error), 401))
  const principal = principalOfGrant(
    {
      ...{ subject: 'alice', client: 'app', roles: [], scopes: [] },
      audiences: [PUBLIC_URL, MCP],
    },
    PUBLIC_URL,
  )
  for (const [path, host] of [
    ['/mcp', undefined],
    ['/mcp/own', '*.test'],
    ['/mcp/other', 'other.example'],
  ] as const)
    app.get(
      path,
      (c, next) => {
        c.set('portcullis.route', completeRoute({ method: 'GET', path, ...(host && { host }) }))
        c.set('portcullis.principal', { ...principal, audiences: [PUBLIC_URL, MCP] })
        return next()
      },
      requireResource({ publicUrl: PUBLIC_URL }),
      (c) => c.text('reached'),
    )
  const statusAt = async (url: string) => (await app.request(url)).status
  expect(await statusAt('https://gateway.test/mcp')).toBe(200)
  expect(await statusAt('https://gateway.test:443/mcp/own')).toBe(200)
  expect(await statusAt('https://shop.test/mcp/own')).toBe(401)
  expect(await statusAt('https://other.example/mcp/other')).toBe(401)
})

const names = fc.constantFrom(
  ...WHOLE,
  ...PATHS.map((path) => PUBLIC_URL + path),
  ...PATHS.map((path) => `HTTPS://Gateway.Test:443${path}`),
  ...[`${PUBLIC_URL}/mcp/`, `${PUBLIC_URL}//mcp`, `${PUBLIC_URL}/mcp/../orders`, OTHER_API],
)
const namesUpTo = (maxLength: number) =>
  fc.oneof(fc.constant<string[]>([]), fc.array(names, { maxLength }))
const requests = fc.record({
  resources: namesUpTo(2),
  audiences: namesUpTo(1),
  scope: fc.constantFrom(undefined, 'mcp:use', 'orders:read', 'orders:*', 'mcp:use orders:write'),
})
const registered = fc.uniqueArray(
  fc.constantFrom(PUBLIC_URL, MCP, `${PUBLIC_URL}/mcp2`, `${PUBLIC_URL}/mcp/books`, OTHER_API),
  { minLength: 1, maxLength: 3 },
)

test('no sequence of grants returns more than the grant before it [S82]', async () => {
  let issued = 0
  let refused = 0
  const first = fc.constantFrom('code', 'client', 'foreign', 'assertion' as const)
  const run = fc.asyncProperty(
    first,
    fc.uniqueArray(fc.constantFrom(PUBLIC_URL, MCP, `${PUBLIC_URL}/mcp2`), { maxLength: 2 }),
    fc.array(fc.tuple(fc.boolean(), registered, requests), { minLength: 1, maxLength: 4 }),
    async (kind, resources, steps) => {
      let { reply, clientId } = await begun(kind, resources)
      for (const [refreshes, audiences, request] of steps) {
        const { access_token: token, refresh_token: refreshToken } = reply.body
        const more = [
          ...repeated(request.resources),
          ...request.audiences.map((name) => ['audience', name]),
          ...(request.scope === undefined ? [] : [['scope', request.scope]]),
        ]
        const by = await machine(audiences, { refresh: refreshes })
        const isRefresh = refreshes && refreshToken !== undefined && typeof clientId === 'string'
        const next = isRefresh
          ? await send([
              ...Object.entries({
                grant_type: 'refresh_token',
                client_id: String(clientId),
                refresh_token: refreshToken,
              }),
              ...more,
            ])
          : await exchange(by, token, more)
        if (next.status !== 200) {
          refused += 1
          expect(['invalid_target', 'invalid_scope', 'invalid_request']).toContain(next.body.error)
          continue
        }
        issued += 1
        // A refresh is bounded by the consent, and an exchange by the token that it presents.
        if (!isRefresh) await expectWithin(next.body.access_token, token)
        else await expectReach(next.body.access_token, await consented(kind, resources))
        reply = isRefresh ? next : { ...next, body: { ...next.body, refresh_token: undefined } }
        if (!isRefresh) clientId = undefined
      }
    },
  )
  await fc.assert(run, { numRuns: 80, seed: 8707, endOnFailure: true })
  expect(issued).toBeGreaterThan(20)
  expect(refused).toBeGreaterThan(20)
})

async function begun(
  kind: 'code' | 'client' | 'foreign' | 'assertion',
  resources: readonly string[],
) {
  if (kind === 'code') return allowed(resources)
  if (kind === 'assertion') return { clientId: undefined, reply: await asserted(resources) }
  const by = await machine([PUBLIC_URL, MCP, `${PUBLIC_URL}/mcp2`, OTHER_API])
  if (kind === 'client') return { clientId: undefined, reply: await credentials(by, resources) }
  const login = await mint(gateway.idp, {
    claims: { aud: PUBLIC_URL, iss: ISSUER, roles: ['clerk'] },
  })
  return { clientId: undefined, reply: await exchange(by, login, repeated(resources)) }
}

/** Presents an identity assertion (ID-JAG) for these resources. */
async function asserted(resources: readonly string[], requested: readonly string[] = []) {
  const { client, secret = '' } = await gateway.registry.create({
    name: 'agent',
    grants: ['urn:ietf:params:oauth:grant-type:jwt-bearer'],
  })
  const assertion = await mint(gateway.idp, {
    header: { typ: 'oauth-id-jag+jwt' },
    claims: { aud: PUBLIC_URL, client_id: client.id, roles: ['clerk'], resource: resources },
  })
  return send([
    ...Object.entries({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      client_id: client.id,
      client_secret: secret,
      assertion,
    }),
    ...repeated(requested),
  ])
}

async function consented(kind: string, resources: readonly string[]) {
  if (kind !== 'code' || resources.length === 0 || resources.includes(PUBLIC_URL)) return PATHS
  return PATHS.filter((path) =>
    resources.some((name) => `${PUBLIC_URL}${path}/`.startsWith(`${name}/`)),
  )
}

async function expectReach(token: string, most: readonly string[]) {
  expect(most).toEqual(expect.arrayContaining([...(await reachOf(token))]))
}

async function expectWithin(token: string, before: string) {
  await expectReach(token, await reachOf(before))
  const [later, earlier] = [decodeJwt(token), decodeJwt(before)]
  const elsewhere = ({ aud }: JWTPayload) =>
    [aud ?? []].flat().filter((name) => !name.startsWith(PUBLIC_URL))
  expect(elsewhere(earlier)).toEqual(expect.arrayContaining(elsewhere(later)))
  expect(later.exp).toBeLessThanOrEqual(earlier.exp ?? 0)
  const scopes = (claims: JWTPayload) => String(claims.scope ?? '*:').split(' ')
  for (const scope of scopes(later))
    expect(
      scopes(earlier).some(
        (held) =>
          held === scope ||
          held === '*:' ||
          (held.endsWith('*') && scope.startsWith(held.slice(0, -1))),
      ),
    ).toBe(true)
}
