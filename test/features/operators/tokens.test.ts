import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { PUBLIC_URL, policy, startGateway, type TestGateway } from './gateway.ts'
import { generateSigningJwk } from './signing-jwk.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

describe('POST /tokens', () => {
  test('a minted JWT has the requested claims and is accepted in both isolates', async () => {
    const requested = {
      subject: 'alice',
      roles: ['reader'],
      scopes: ['orders:read'],
      tenant: 'acme',
      client: 'support',
      ttlSeconds: 600,
    }
    const { status, body } = await gateway.admin('POST', '/tokens', requested)
    expect(status).toBe(201)
    const claims = decodeJwt(body.token)
    expect(claims).toMatchObject({
      iss: PUBLIC_URL,
      aud: PUBLIC_URL,
      sub: 'alice',
      client_id: 'support',
      tenant: 'acme',
      roles: ['reader'],
      scope: 'orders:read',
      jti: body.tokenId,
    })
    expect(Number(claims.exp) - Number(claims.iat)).toBe(600)
    expect(Date.parse(body.expiresAt)).toBe(Number(claims.exp) * 1000)
    expect((await gateway.call(body.token, 0)).status).toBe(200)
    expect((await gateway.call(body.token, 1)).status).toBe(200)
  })

  test('an opaque token appears in its own response and nowhere else, and its record expires [S40]', async () => {
    const requested = { subject: 'alice', roles: ['reader'], format: 'opaque' }
    const { body } = await gateway.admin('POST', '/tokens', requested)
    expect((await gateway.call(body.token, 1)).status).toBe(200)
    expect(body.tokenId).not.toBe(body.token)
    expect(await gateway.dump()).not.toContain(body.token)
    expect(JSON.stringify(gateway.events)).not.toContain(body.token)
    expect(gateway.events.find(({ change }) => change?.action === 'token.mint')).toBeDefined()
  })

  test('a minted token can be revoked by its returned id', async () => {
    const { body } = await gateway.admin('POST', '/tokens', { subject: 'eve', roles: ['reader'] })
    const revocation = { kind: 'token', value: body.tokenId, issuer: PUBLIC_URL }
    expect((await gateway.admin('POST', '/revocations', revocation)).status).toBe(201)
    expect((await gateway.call(body.token)).status).toBe(401)
  })

  test.each([299, 3_601])('a lifetime of %i s is refused', async (ttlSeconds) => {
    expect((await gateway.admin('POST', '/tokens', { subject: 'a', ttlSeconds })).status).toBe(422)
  })

  test('a gateway without signing keys mints no tokens and publishes no keys', async () => {
    const silent = await startGateway({ signs: false })
    try {
      expect((await silent.admin('POST', '/tokens', { subject: 'alice' })).status).toBe(404)
      expect((await silent.admin('GET', '/keys')).body).toEqual({ keys: [] })
    } finally {
      await silent.close()
    }
  })
})

test('keys are listed with their state and without private members [S46]', async () => {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const keys = [
    { ...generateSigningJwk('next'), nbf: nowSeconds + 600 },
    { ...generateSigningJwk('active'), exp: nowSeconds + 3_900 },
    { ...generateSigningJwk('retired'), exp: nowSeconds + 900 },
    { ...generateSigningJwk('expired'), exp: nowSeconds - 1 },
  ]
  const env = { ...gateway.env, SIGNING_KEYS: JSON.stringify({ keys }) }
  const app = createGateway(
    { ...composeServices(env, policy, WORKERS), auditSink: { record() {} } },
    policy,
  )
  const response = await app.fetch(
    new Request(`${PUBLIC_URL}/-/admin/keys`, {
      headers: { Authorization: `Bearer ${gateway.operator}` },
    }),
  )
  const text = await response.text()
  const at = (seconds: number) => new Date(seconds * 1000).toISOString()
  expect(JSON.parse(text)).toEqual({
    keys: [
      { kid: 'next', alg: 'ES256', state: 'next', notBefore: at(nowSeconds + 600) },
      { kid: 'active', alg: 'ES256', state: 'active', expiresAt: at(nowSeconds + 3_900) },
      { kid: 'retired', alg: 'ES256', state: 'retired', expiresAt: at(nowSeconds + 900) },
      { kid: 'expired', alg: 'ES256', state: 'retired', expiresAt: at(nowSeconds - 1) },
    ],
  })
  for (const { d, x } of keys) {
    expect(text).not.toContain(d)
    expect(text).not.toContain(x)
  }
})
