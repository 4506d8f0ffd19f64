/** Identity assertions (ID-JAG): the provider of a company decides, and the gateway checks. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKey, ISSUER, mint } from '../harness/issuer.ts'
import { type CodeGateway, MCP, PUBLIC_URL, startCodeGateway } from './code-gateway.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

let gateway: CodeGateway
let client: { id: string; secret: string }
beforeAll(async () => {
  gateway = await startCodeGateway({ identityAssertions: [ISSUER] })
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

describe('S77: refused, without a token:', () => {
  test.each<[string, object, object, string]>([
    ['another audience', { aud: 'https://other.test' }, {}, 'aud'],
    ['an access token', {}, { typ: 'at+jwt' }, 'typ'],
    ['an ID token', {}, { typ: 'JWT' }, 'typ'],
    ['an assertion for another client', { client_id: 'other' }, {}, 'client'],
    ['no client', { client_id: undefined }, {}, 'client'],
    ['no id', { jti: undefined }, {}, 'jti'],
    ['an expired one', { exp: Math.floor(Date.now() / 1000) - 100 }, {}, 'exp'],
    ['another issuer', { iss: 'https://other.test' }, {}, 'iss'],
  ])('%s', async (_, claims, header, check) => {
    const { status, body } = await present(await assertionOf(claims, header))
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_grant' })
    expect(gateway.events.at(-1)?.reason).toBe(`invalid_grant:assertion_${check}`)
  })

  test('a signature by another key', async () => {
    const forged = await assertionOf({}, {}, await createKey('idp'))
    expect((await present(forged)).body.error).toBe('invalid_grant')
  })

  test('a second use, also at the same time', async () => {
    const assertion = await assertionOf()
    const replies = await Promise.all([1, 2, 3, 4].map(() => present(assertion)))
    expect(replies.filter(({ status }) => status === 200).length).toBe(1)
    expect((await present(assertion)).body.error).toBe('invalid_grant')
  })

  test('a second use as long as any issuer may tolerate its clock to be late', async () => {
    const exp = Math.floor(Date.now() / 1000) + 100
    expect((await present(await assertionOf({ jti: 'kept', exp }))).status).toBe(200)
    const keys = await gateway.redis.direct.keys('pc:oauth-requests:assertion:*')
    const lives = await Promise.all(keys.map((key) => gateway.redis.direct.ttl(key)))
    expect(Math.min(...lives)).toBeGreaterThanOrEqual(exp - Date.now() / 1000 + 295)
  })

  test('a resource that the assertion does not name', async () => {
    const reply = await present(await assertionOf(), { resource: `${PUBLIC_URL}/orders` })
    expect(reply.body.error).toBe('invalid_target')
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
    expect((await present(assertion)).body.error).toBe('invalid_grant')
  })

  test('a public client, and a client without the grant', async () => {
    const id = await gateway.createClient()
    const reply = await present(await assertionOf({ client_id: id }), {
      client_id: id,
      client_secret: undefined,
    })
    expect(reply.body.error).toBe('unauthorized_client')
    const other = await confidential({ grants: ['client_credentials'] })
    const more = { client_id: other.id, client_secret: other.secret }
    expect((await present(await assertionOf({ client_id: other.id }), more)).body.error).toBe(
      'unauthorized_client',
    )
  })

  test('any assertion, if the policy lists no issuer', async () => {
    const closed = await startCodeGateway()
    const reply = await closed.token({
      grant_type: GRANT,
      client_id: await closed.createClient(),
      assertion: await assertionOf(),
    })
    expect(reply.body.error).toBe('unsupported_grant_type')
    await closed.close()
  })

  test('a policy that lists an unknown issuer does not start', async () => {
    await expect(
      startCodeGateway({ identityAssertions: ['https://unknown.test'] }),
    ).rejects.toThrow('https://unknown.test is not an issuer of ISSUERS')
  })
})
