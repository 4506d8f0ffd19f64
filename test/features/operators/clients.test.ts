import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { createKey } from '../../harness/issuer.ts'
import { policyOf, startGateway, type TestGateway } from './gateway.ts'

const CONFIGURED = randomUUID()
const hash = createHash('sha256').update('a secret of the configuration').digest('base64url')

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({
    clients: [{ id: CONFIGURED, grants: ['client_credentials'], secretSha256: hash }],
  })
})
afterAll(() => gateway.close())

const create = async (body: object = {}) => {
  const reply = await gateway.admin('POST', '/clients', {
    name: 'billing',
    grants: ['client_credentials'],
    roles: ['reader'],
    ...body,
  })
  expect(reply.status, reply.text).toBe(201)
  return reply.body
}
const tokenOf = (clientId: string, clientSecret: string, at: 0 | 1 = 0) =>
  gateway.send(
    '/oauth/token',
    {
      method: 'POST',
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}`,
      },
      body: 'grant_type=client_credentials',
    },
    at,
  )

test('a new client gets tokens at once; a disabled client gets none and its tokens are refused, in both isolates', async () => {
  const { clientId, clientSecret } = await create()
  const { body } = await tokenOf(clientId, clientSecret, 1)
  expect((await gateway.call(body.access_token, 0)).status).toBe(200)
  expect((await gateway.call(body.access_token, 1)).status).toBe(200)
  expect((await gateway.admin('DELETE', `/clients/${clientId}`)).status).toBe(204)
  const before = gateway.originCalls()
  for (const at of [0, 1] as const) {
    expect((await gateway.call(body.access_token, at)).status).toBe(401)
    expect((await tokenOf(clientId, clientSecret, at)).status).toBe(401)
  }
  expect(gateway.originCalls()).toBe(before)
  expect((await gateway.admin('GET', `/clients/${clientId}`)).status).toBe(404)
  expect((await gateway.admin('POST', `/clients/${clientId}/secret`)).status).toBe(404)
  const { clients } = (await gateway.admin('GET', '/clients')).body
  expect(clients).toContainEqual(
    expect.objectContaining({ clientId, disabled: true, configured: false }),
  )
  expect((await gateway.admin('DELETE', `/clients/${clientId}`)).status).toBe(204)
})

test('a rotated secret expires at once, or after its grace period', async () => {
  const { clientId, clientSecret } = await create()
  const graced = await gateway.admin('POST', `/clients/${clientId}/secret`, { graceSeconds: 60 })
  expect(graced.status).toBe(200)
  expect((await tokenOf(clientId, clientSecret)).status).toBe(200)
  expect((await tokenOf(clientId, graced.body.clientSecret)).status).toBe(200)
  const ended = await gateway.admin('POST', `/clients/${clientId}/secret`)
  expect(ended.status).toBe(200)
  expect((await tokenOf(clientId, clientSecret)).status).toBe(401)
  expect((await tokenOf(clientId, graced.body.clientSecret)).status).toBe(401)
  expect((await tokenOf(clientId, ended.body.clientSecret)).status).toBe(200)
})

test('a client from the configuration is listed and cannot be changed', async () => {
  const shown = await gateway.admin('GET', `/clients/${CONFIGURED}`)
  expect(shown.body).toMatchObject({ clientId: CONFIGURED, configured: true })
  for (const [method, path] of [
    ['POST', `/clients/${CONFIGURED}/secret`],
    ['DELETE', `/clients/${CONFIGURED}`],
  ] as const) {
    const reply = await gateway.admin(method, path)
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toEqual([
      { in: 'params', path: '/clientId', message: 'is defined in CLIENTS; change it there' },
    ])
  }
})

test('a client that authenticates with keys never has a secret', async () => {
  const { publicJwk } = await createKey('of-the-client')
  const { clientId, clientSecret, authentication } = await create({
    jwks: { keys: [publicJwk] },
  })
  expect(clientSecret).toBeUndefined()
  expect(authentication).toBe('private_key_jwt')
  expect((await gateway.admin('POST', `/clients/${clientId}/secret`)).status).toBe(422)
})

test('a secret appears in the response that creates it and nowhere else, and no response has a hash [S40]', async () => {
  const { clientId, clientSecret } = await create()
  const rotated = (await gateway.admin('POST', `/clients/${clientId}/secret`, { graceSeconds: 9 }))
    .body.clientSecret
  const answers =
    (await gateway.admin('GET', '/clients?limit=200')).text +
    (await gateway.admin('GET', `/clients/${clientId}`)).text
  const dump = await gateway.dump()
  for (const secret of [clientSecret, rotated]) {
    for (const place of [answers, dump, JSON.stringify(gateway.events)])
      expect(place).not.toContain(secret.slice(4, 24))
    const stored = createHash('sha256').update(secret).digest('base64url')
    expect(dump).toContain(stored)
    expect(answers).not.toContain(stored)
  }
  expect(answers).not.toContain(hash)
})

test('clients are listed newest first, page by page, with those of the configuration last', async () => {
  const { clientId } = await create({ name: 'the newest' })
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const query = cursor === undefined ? '' : `&cursor=${cursor}`
    const { body, status } = await gateway.admin('GET', `/clients?limit=2${query}`)
    expect(status).toBe(200)
    seen.push(...body.clients.map((client: { clientId: string }) => client.clientId))
    cursor = body.cursor
  } while (cursor !== undefined)
  expect(seen[0]).toBe(clientId)
  expect(seen.at(-1)).toBe(CONFIGURED)
  expect(new Set(seen).size).toBe(seen.length)
  expect((await gateway.admin('GET', '/clients?cursor=nonsense')).status).toBe(422)
})

test('an unknown client is 404 for every call', async () => {
  const id = randomUUID()
  for (const [method, path] of [
    ['GET', `/clients/${id}`],
    ['POST', `/clients/${id}/secret`],
    ['DELETE', `/clients/${id}`],
  ] as const)
    expect((await gateway.admin(method, path)).status).toBe(404)
})

test('disabling a client revokes tokens and sessions that other clients obtained by exchange of its tokens [S30]', async () => {
  const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
  const requestToken = (client: { clientId: string; clientSecret: string }, params: object) =>
    gateway.send(
      '/oauth/token',
      {
        method: 'POST',
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          Authorization: `Basic ${btoa(`${client.clientId}:${client.clientSecret}`)}`,
        },
        body: new URLSearchParams({ ...params }).toString(),
      },
      1,
    )
  const exchanged = async (client: { clientId: string; clientSecret: string }, token: string) => {
    const subject = { subject_token: token, subject_token_type: ACCESS_TOKEN }
    return (await requestToken(client, { grant_type: EXCHANGE, ...subject })).body
  }
  const service = await create()
  const relay = await create({ grants: [EXCHANGE] })
  const front = await create({ grants: [EXCHANGE, 'refresh_token'] })
  const own = (await tokenOf(service.clientId, service.clientSecret)).body.access_token
  const relayed = await exchanged(relay, own)
  const session = await exchanged(front, relayed.access_token)
  expect((await gateway.call(relayed.access_token, 1)).status).toBe(200)
  expect((await gateway.call(session.access_token, 1)).status).toBe(200)
  expect((await gateway.admin('DELETE', `/clients/${service.clientId}`)).status).toBe(204)
  expect((await gateway.call(relayed.access_token, 1)).status).toBe(401)
  expect((await gateway.call(session.access_token, 1)).status).toBe(401)
  const refresh = { grant_type: 'refresh_token', refresh_token: session.refresh_token }
  expect((await requestToken(front, refresh)).body.error).toBe('invalid_grant')
})

test('a token issued between two revocations of a client in one second is refused after the second [S33]', async () => {
  const { clientId, clientSecret } = await create()
  for (let round = 0; round < 3; round++) {
    await gateway.admin('POST', '/revocations', { kind: 'client', value: clientId })
    const { status, body } = await tokenOf(clientId, clientSecret)
    expect(status).toBe(200)
    expect((await gateway.call(body.access_token, 1)).status).toBe(200)
    const again = await gateway.admin('POST', '/revocations', { kind: 'client', value: clientId })
    expect(again.status).toBe(201)
    expect((await gateway.call(body.access_token, 1)).status).toBe(401)
    await gateway.admin('DELETE', `/revocations/${again.body.id}`)
    expect((await gateway.call(body.access_token, 1)).status).toBe(200)
  }
})

test('under the profile fapi2, operators create no client that could never log in', async () => {
  const fapi = await startGateway({
    policy: policyOf({
      features: [authorizationServer({ profile: 'fapi2' }), operators()],
    }),
  })
  try {
    const redirectUris = ['https://app.example.com/callback']
    const acting = { grants: ['authorization_code', 'refresh_token'], redirectUris }
    const withKeys = { jwks: { keys: [(await createKey('client')).publicJwk] } }
    const post = (body: object) => fapi.admin('POST', '/clients', { name: 'bank', ...body })
    for (const body of [
      acting,
      { ...acting, public: true },
      { grants: ['urn:ietf:params:oauth:grant-type:token-exchange'] },
    ]) {
      const { status, body: problem } = await post(body)
      expect([status, problem.errors?.[0]?.path]).toEqual([422, '/jwks'])
      expect(problem.errors?.[0]?.message).toContain('private_key_jwt')
    }
    const { n, e, kty } = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
      format: 'jwk',
    })
    const rsa = await post({
      grants: ['client_credentials'],
      jwks: { keys: [{ n, e, kty, alg: 'RS256' }] },
    })
    expect([rsa.status, rsa.body.errors?.[0]?.path]).toEqual([422, '/jwks'])
    expect((await fapi.admin('GET', '/clients')).body.clients).toEqual([])
    expect((await post({ ...acting, ...withKeys })).body.authentication).toBe('private_key_jwt')
    const machine = await post({ grants: ['client_credentials'] })
    expect([machine.status, machine.body.clientSecret]).toEqual([201, expect.any(String)])
  } finally {
    await fapi.close()
  }
})
