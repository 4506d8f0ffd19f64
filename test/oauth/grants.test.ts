import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER } from '../harness/issuer.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

describe('client credentials', () => {
  test('a client gets a token for itself, and no refresh token', async () => {
    const client = await gateway.createClient({ roles: ['reader'] })
    const { status, body } = await gateway.token(client, { grant_type: 'client_credentials' })
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 900,
    })
    expect(decodeJwt(body.access_token)).toMatchObject({
      iss: PUBLIC_URL,
      sub: client.id,
      client_id: client.id,
      aud: PUBLIC_URL,
      roles: ['reader'],
    })
    expect((await gateway.call(body.access_token)).status).toBe(200)
  })
})

describe('token exchange', () => {
  test('a login becomes a session: exchange, call, refresh, call, logout', async () => {
    const client = await gateway.createClient()
    const login = await gateway.login({ claims: { sub: 'alice', tenant: 'acme' } })
    const first = await gateway.exchange(client, login)
    expect(first.body).toMatchObject({ token_type: 'Bearer', expires_in: 900 })
    expect(decodeJwt(first.body.access_token)).toMatchObject({
      sub: 'alice',
      sub_iss: ISSUER,
      client_id: client.id,
      tenant: 'acme',
      roles: ['reader'],
    })
    expect((await gateway.call(first.body.access_token)).status).toBe(200)
    const second = await gateway.refresh(client, first.body.refresh_token)
    expect(second.status).toBe(200)
    expect(second.body.refresh_token).not.toBe(first.body.refresh_token)
    expect((await gateway.call(second.body.access_token)).status).toBe(200)
    expect((await gateway.revoke(client, second.body.refresh_token)).status).toBe(200)
    for (const { body } of [first, second])
      expect((await gateway.call(body.access_token)).status).toBe(401)
    expect((await gateway.refresh(client, second.body.refresh_token)).body.error).toBe(
      'invalid_grant',
    )
  })
})
