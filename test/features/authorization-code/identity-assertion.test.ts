/** Identity assertions (ID-JAG): the provider of a company decides, and the gateway checks. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { type CodeGateway, MCP, PUBLIC_URL, startCodeGateway } from './code-gateway.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** Issuers with one rule each. */
const RULES = [
  { issuer: 'https://require.test', require: { department: 'sales' } },
  { issuer: 'https://refuse.test', refuse: ['guest'] },
  { issuer: 'https://clients.test', clients: ['ffffffff-*'] },
  { issuer: 'https://audience.test', audienceClaim: 'target', audience: 'orders' },
  { issuer: 'https://client-claim.test', clientClaim: ['app'] },
  { issuer: 'https://scopes.test', scopesMap: { 'use-mcp': 'mcp:use' } },
]

let gateway: CodeGateway
let client: { id: string; secret: string }
beforeAll(async () => {
  gateway = await startCodeGateway(
    { identityAssertions: [ISSUER, ...RULES.map(({ issuer }) => issuer)] },
    {},
    RULES,
  )
  client = await confidential()
})
afterAll(() => gateway.close())

async function confidential(more = {}) {
  const { client: created, secret = '' } = await gateway.registry.create({
    name: 'agent',
    grants: [GRANT],
    ...more,
  })
  return { id: created.id, secret }
}

const assertionOf = (claims: object = {}, header: object = {}, key = gateway.idp) =>
  mint(key, {
    header: { typ: 'oauth-id-jag+jwt', ...header },
    claims: {
      aud: PUBLIC_URL,
      client_id: client.id,
      sub: 'alice',
      roles: ['clerk'],
      resource: MCP,
      scope: 'mcp:use books:read',
      jti: crypto.randomUUID(),
      ...claims,
    },
  } as never)

const present = (assertion: string, more = {}) =>
  gateway.token({
    grant_type: GRANT,
    client_id: client.id,
    client_secret: client.secret,
    assertion,
    ...more,
  })

test('an assertion gives its client a token for the user, without a refresh token', async () => {
  const { status, body } = await present(await assertionOf())
  expect({ status, scope: body.scope, refresh: body.refresh_token }).toEqual({
    status: 200,
    scope: 'mcp:use books:read',
  })
  expect((await gateway.call(body.access_token)).status).toBe(200)
  expect((await gateway.call(body.access_token, '/orders')).status).toBe(401)
  expect(gateway.events.at(-1)?.actor).toMatchObject({ subject: 'alice', issuer: ISSUER })
})

test('the token has no more than assertion, request and roles allow', async () => {
  const narrow = await present(await assertionOf(), { scope: 'mcp:use' })
  expect(narrow.body.scope).toBe('mcp:use')
  const reader = await present(await assertionOf({ roles: ['reader'] }))
  expect(reader.body.scope).toBe('mcp:use')
  const beyond = await present(await assertionOf({ scope: 'mcp:use' }), { scope: 'books:read' })
  expect(beyond).toMatchObject({ status: 400 })
})

test('the metadata names the grant and its profile', async () => {
  const { body } = await gateway.send('/.well-known/oauth-authorization-server')
  expect(body.grant_types_supported).toContain(GRANT)
  expect(body.authorization_grant_profiles_supported).toEqual([
    'urn:ietf:params:oauth:grant-profile:id-jag',
  ])
})

/** The reason of the last request to the token endpoint. */
const reasonOfToken = () => gateway.events.findLast(({ route }) => route === '/oauth/token')?.reason

/** Presents an assertion. Neither the answer nor the assertion itself may reach the origin. */
const presentInVain = (assertion: string, more = {}) =>
  gateway.issuingNothing(() => present(assertion, more), [assertion])

describe('refused, without a token or a request to the origin [S77]:', () => {
  test.each<[string, object, object, string]>([
    ['another audience', { aud: 'https://other.test' }, {}, 'aud'],
    ['the audience of the resource', { aud: MCP }, {}, 'aud'],
    ['an ID token', {}, { typ: 'JWT' }, 'typ'],
    ['no type', {}, { typ: undefined }, 'typ'],
    ['an assertion for another client', { client_id: 'other' }, {}, 'client'],
    ['no client', { client_id: undefined }, {}, 'client'],
    ['no id', { jti: undefined }, {}, 'jti'],
    ['no subject', { sub: undefined }, {}, 'sub'],
    ['an expired one', { exp: Math.floor(Date.now() / 1000) - 100 }, {}, 'exp'],
    ['another issuer', { iss: 'https://other.test' }, {}, 'iss'],
  ])('%s', async (_, claims, header, check) => {
    const assertion = await assertionOf(claims, header)
    const { status, body } = await presentInVain(assertion)
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_grant' })
    expect(reasonOfToken()).toBe(`invalid_grant:assertion_${check}`)
  })

  test('an access token, which gives no other token', async () => {
    const accessToken = await assertionOf({}, { typ: 'at+jwt' })
    const reply = await gateway.issuingNothing(() => present(accessToken))
    expect(reply.body.error).toBe('invalid_grant')
    expect(reasonOfToken()).toBe('invalid_grant:assertion_typ')
  })

  test('a signature by another key', async () => {
    const forged = await assertionOf({}, {}, await createKey('idp'))
    expect((await presentInVain(forged)).body.error).toBe('invalid_grant')
  })

  test('a second use, also at the same time', async () => {
    const assertion = await assertionOf()
    const replies = await Promise.all([1, 2, 3, 4].map(() => present(assertion)))
    expect(replies.filter(({ status }) => status === 200).length).toBe(1)
    expect((await presentInVain(assertion)).body.error).toBe('invalid_grant')
  })

  test('a second use within the largest clock tolerance of an issuer', async () => {
    const exp = Math.floor(Date.now() / 1000) + 100
    expect((await present(await assertionOf({ jti: 'kept', exp }))).status).toBe(200)
    const keys = await gateway.redis.direct.keys('pc:oauth-requests:assertion:*')
    const lives = await Promise.all(keys.map((key) => gateway.redis.direct.ttl(key)))
    expect(Math.min(...lives)).toBeGreaterThanOrEqual(exp - Date.now() / 1000 + 295)
  })

  test('a resource that the assertion does not name, and one that does not exist', async () => {
    const orders = { resource: `${PUBLIC_URL}/orders` }
    expect((await presentInVain(await assertionOf(), orders)).body.error).toBe('invalid_target')
    const unknown = await assertionOf({ resource: 'https://other.test/mcp' })
    expect((await presentInVain(unknown)).body.error).toBe('invalid_target')
  })

  test('another subject than that of the assertion: the request cannot name one', async () => {
    const named = { sub: 'root', subject: 'root', username: 'root', login_hint: 'root' }
    const { body } = await present(await assertionOf({ sub: 'carol' }), named)
    expect((await gateway.call(body.access_token)).status).toBe(200)
    expect(gateway.events.at(-1)?.actor).toMatchObject({ subject: 'carol', issuer: ISSUER })
  })

  test('an assertion from before the revocation of its subject', async () => {
    const assertion = await assertionOf({ sub: 'bob' })
    await gateway.revocations.revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: 'bob',
      atSeconds: Math.floor(Date.now() / 1000) + 1,
      ttlSeconds: 100,
    })
    expect((await presentInVain(assertion)).body.error).toBe('invalid_grant')
  })

  test('a public client, and a client without the grant', async () => {
    const id = await gateway.createClient()
    const reply = await presentInVain(await assertionOf({ client_id: id }), {
      client_id: id,
      client_secret: undefined,
    })
    expect(reply.body.error).toBe('unauthorized_client')
    const other = await confidential({ grants: ['client_credentials'] })
    const more = { client_id: other.id, client_secret: other.secret }
    expect((await presentInVain(await assertionOf({ client_id: other.id }), more)).body.error).toBe(
      'unauthorized_client',
    )
  })

  test('any assertion, if the policy lists no issuer', async () => {
    const closed = await startCodeGateway()
    const assertion = await assertionOf()
    const client_id = await closed.createClient()
    const attack = () => closed.token({ grant_type: GRANT, client_id, assertion })
    const reply = await closed.issuingNothing(attack, [assertion])
    expect(reply.body.error).toBe('unsupported_grant_type')
    await closed.close()
  })

  test('a policy that lists an unknown issuer does not start', async () => {
    await expect(
      startCodeGateway({ identityAssertions: ['https://unknown.test'] }),
    ).rejects.toThrow('https://unknown.test is not an issuer of ISSUERS')
  })
})

describe('the rules of the issuer apply to assertions [S83]', () => {
  test.each<[string, string, object, string | number]>([
    ['a required claim', 'require', { department: 'sales' }, 200],
    ['no required claim', 'require', {}, 'required_claim'],
    ['another value of it', 'require', { department: 'legal' }, 'required_claim'],
    ['no refused claim', 'refuse', {}, 200],
    ['a refused claim', 'refuse', { guest: true }, 'refused_claim'],
    ['a client that is not accepted', 'clients', {}, 'client_id'],
    ['the audience in its claim', 'audience', { target: 'orders' }, 200],
    ['another audience in its claim', 'audience', { target: 'reports' }, 'aud'],
    ['no audience in its claim', 'audience', {}, 'aud'],
    [
      'an audience there, and another `aud`',
      'audience',
      { target: 'orders', aud: 'orders' },
      'aud',
    ],
    ['the client in `client_id`', 'client-claim', {}, 200],
    ['a scope of the map', 'scopes', { scope: 'use-mcp' }, 200],
  ])('%s', async (_, name, claims, expected) => {
    const assertion = await assertionOf({ iss: `https://${name}.test`, ...claims })
    if (expected === 200) return expect((await present(assertion)).status).toBe(200)
    const { status, body } = await presentInVain(assertion)
    expect([status, body.error]).toEqual([400, 'invalid_grant'])
    expect(reasonOfToken()).toBe(`invalid_grant:assertion_${expected}`)
  })

  test('no other claim takes the place of `client_id`', async () => {
    for (const name of ['azp', 'cid', 'appid', 'app'])
      for (const client_id of [undefined, null, ''])
        for (const iss of [ISSUER, 'https://client-claim.test']) {
          const assertion = await assertionOf({ iss, client_id, [name]: client.id })
          expect((await presentInVain(assertion)).body.error).toBe('invalid_grant')
          expect(reasonOfToken()).toBe('invalid_grant:assertion_client')
        }
  })

  test('scopes that the map drops give no other scopes', async () => {
    const assertion = await assertionOf({ iss: 'https://scopes.test', scope: 'other' })
    expect((await presentInVain(assertion)).body.error).toBe('invalid_scope')
  })
})
