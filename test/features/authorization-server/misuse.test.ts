/** Misuse of valid credentials by a client or by its user. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const GRANT = { grant_type: 'client_credentials' }

/** Creates a session and returns its used refresh token, its current one and an access token. */
async function session(described: Parameters<TestGateway['createClient']>[0] = {}) {
  const client = await gateway.createClient(described)
  const first = (await gateway.exchange(client, await gateway.login())).body
  const second = (await gateway.refresh(client, first.refresh_token)).body
  const third = (await gateway.refresh(client, second.refresh_token)).body
  return {
    client,
    dead: first.refresh_token,
    live: third.refresh_token,
    access: third.access_token,
  }
}

describe('a used refresh token', () => {
  test('is inactive in introspection, and introspection does not end its session [S36]', async () => {
    const { client, dead, live, access } = await session()
    expect((await gateway.introspect(client, dead)).body).toEqual({ active: false })
    expect((await gateway.introspect(client, live)).body.active).toBe(true)
    expect((await gateway.call(access)).status).toBe(200)
    expect((await gateway.refresh(client, live)).status).toBe(200)
  })

  test('does not end the session when another client introspects, revokes or refreshes it [S38]', async () => {
    const { client, dead, live, access } = await session()
    const other = await gateway.createClient()
    const madeUp = `${dead.slice(0, 22)}.${'A'.repeat(43)}`
    for (const token of [dead, madeUp]) {
      expect((await gateway.introspect(other, token)).body).toEqual({ active: false })
      expect((await gateway.revoke(other, token)).body.error).toBe('invalid_grant')
      expect((await gateway.refresh(other, token)).body.error).toBe('invalid_grant')
    }
    expect((await gateway.call(access)).status).toBe(200)
    expect((await gateway.refresh(client, live)).status).toBe(200)
  })

  test('revoked by its own client ends the session, as a logout must [S30]', async () => {
    const { client, dead, live, access } = await session()
    expect((await gateway.revoke(client, dead)).status).toBe(200)
    expect((await gateway.call(access)).status).toBe(401)
    expect((await gateway.refresh(client, live)).body.error).toBe('invalid_grant')
  })
})

describe('a user without roles and scopes', () => {
  test.each([
    ['of the API', ['orders:read'], '/orders'],
    ['of operators', ['portcullis:clients:list'], '/-/admin/clients'],
  ])(
    'does not get the permissions %s from the scopes of the client [S38]',
    async (_, scopes, path) => {
      const client = await gateway.createClient({ scopes })
      const login = await gateway.login({ claims: { roles: [] } })
      const before = gateway.originCalls()
      for (const scope of [undefined, scopes[0]]) {
        const { status, body } = await gateway.exchange(client, login, { scope })
        expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_scope' })
      }
      const headers = { Authorization: `Bearer ${login}` }
      expect((await gateway.send(path, { method: 'GET', headers })).status).toBe(403)
      expect(gateway.originCalls()).toBe(before)
    },
  )

  test('keeps the scopes that its own login granted', async () => {
    const client = await gateway.createClient({ scopes: ['orders:read', 'orders:write'] })
    const login = await gateway.login({ claims: { roles: [], scope: 'orders:read' } })
    const { body } = await gateway.exchange(client, login)
    expect(body.scope).toBe('orders:read')
    expect((await gateway.call(body.access_token)).status).toBe(200)
    const next = await gateway.refresh(client, body.refresh_token)
    expect((await gateway.call(next.body.access_token)).status).toBe(200)
  })
})

describe('a retried refresh with another scope', () => {
  const scopes = ['orders:read', 'other:read']
  const login = () => gateway.login({ claims: { roles: ['clerk'] } })

  test('does not widen the opaque token that the first response contained [S37]', async () => {
    const client = await gateway.createClient({ tokenFormat: 'opaque', scopes })
    const { refresh_token } = (await gateway.exchange(client, await login())).body
    const narrow = (await gateway.refresh(client, refresh_token, { scope: 'other:read' })).body
    const wide = (await gateway.refresh(client, refresh_token)).body
    expect(wide.refresh_token).toBe(narrow.refresh_token)
    expect(wide.access_token).not.toBe(narrow.access_token)
    const before = gateway.originCalls()
    expect((await gateway.call(narrow.access_token)).status).toBe(403)
    expect(gateway.originCalls()).toBe(before)
    expect((await gateway.call(wide.access_token)).status).toBe(200)
  })

  test('returns a JWT with its own jti, the same one for each retry [S37]', async () => {
    const client = await gateway.createClient({ scopes })
    const { refresh_token } = (await gateway.exchange(client, await login())).body
    const idOf = async (scope?: string) => {
      const { body } = await gateway.refresh(client, refresh_token, { scope })
      return decodeJwt(body.access_token).jti
    }
    const [narrow, wide, again] = [await idOf('other:read'), await idOf(), await idOf('other:read')]
    expect(wide).not.toBe(narrow)
    expect(again).toBe(narrow)
  })
})

test('the token that a client got for itself begins no session for another client (RFC 6749 section 4.4.3)', async () => {
  const service = await gateway.createClient({ roles: ['reader'] })
  const { access_token } = (await gateway.token(service, GRANT)).body
  const other = await gateway.createClient()
  const { status, body } = await gateway.exchange(other, access_token)
  expect(status).toBe(200)
  expect(body).not.toHaveProperty('refresh_token')
  const [before, after] = [access_token, body.access_token].map((token) => decodeJwt(token))
  expect(after).not.toHaveProperty('sid')
  expect(after?.exp).toBeLessThanOrEqual(before?.exp ?? 0)
})
