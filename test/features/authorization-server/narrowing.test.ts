/** Scopes narrow what roles grant and never widen it, for every grant. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reply, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const GRANT = { grant_type: 'client_credentials' }
/** Scopes that a client might request without a right to them. */
const TOO_MUCH = [
  'admin superuser',
  'openid',
  'orders:delete',
  'orders:*',
  'orders:read admin',
  '*',
]

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const login = (claims: object = {}) => gateway.login({ claims: { ...claims } })
const scopeOf = ({ body }: Reply) => body.error ?? decodeJwt(body.access_token).scope
const permitted = async ({ body }: Reply) => (await gateway.call(body.access_token)).status

describe('a client without scopes [S38]', () => {
  let client: TestClient
  beforeAll(async () => {
    client = await gateway.createClient({ roles: ['clerk'] })
  })

  test.each(TOO_MUCH)('gets no token for itself with the scope %s', async (scope) => {
    const before = gateway.originCalls()
    const { status, body } = await gateway.token(client, { ...GRANT, scope })
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_scope' })
    expect(gateway.originCalls()).toBe(before)
  })

  test.each(TOO_MUCH)(
    'gets no token and no session for a user with the scope %s',
    async (scope) => {
      const before = await gateway.redis.direct.keys('pc:*refresh:*')
      for (const claims of [{}, { scope: 'orders:read' }, { scope: 'email' }, { roles: [] }]) {
        const { status, body } = await gateway.exchange(client, await login(claims), { scope })
        expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_scope' })
      }
      expect(await gateway.redis.direct.keys('pc:*refresh:*')).toEqual(before)
    },
  )

  test.each(TOO_MUCH)('gets no refreshed token with the scope %s', async (scope) => {
    for (const claims of [{}, { scope: 'orders:read' }]) {
      const { body } = await gateway.exchange(client, await login(claims))
      const next = await gateway.refresh(client, body.refresh_token, { scope })
      expect(next.body.error).toBe('invalid_scope')
    }
  })

  test('gets a requested scope that its roles, or the roles of its user, cover', async () => {
    const own = await gateway.token(client, { ...GRANT, scope: 'other:read' })
    expect([scopeOf(own), await permitted(own)]).toEqual(['other:read', 403])
    const pattern = await gateway.token(client, { ...GRANT, scope: 'other:* orders:read' })
    expect([scopeOf(pattern), await permitted(pattern)]).toEqual(['other:* orders:read', 200])
    for (const claims of [{}, { scope: 'openid' }]) {
      const forUser = await gateway.exchange(client, await login(claims), { scope: 'orders:read' })
      expect([scopeOf(forUser), await permitted(forUser)]).toEqual(['orders:read', 200])
    }
  })

  test('gets everything that its roles or the login grant if it requests no scope', async () => {
    const own = await gateway.token(client, GRANT)
    expect([scopeOf(own), await permitted(own)]).toEqual([undefined, 200])
    const roles = ['reader', 'clerk']
    const cases = [
      [{ roles }, undefined],
      [{ roles, scope: 'openid' }, 'openid'],
      [{ roles, scope: 'openid orders:read orders:delete' }, 'openid orders:read'],
      [{ roles: [], scope: 'orders:read orders:delete' }, 'orders:read orders:delete'],
    ] as const
    for (const [claims, scope] of cases) {
      const forUser = await gateway.exchange(client, await login(claims))
      expect([scopeOf(forUser), await permitted(forUser)]).toEqual([scope, 200])
      const next = await gateway.refresh(client, forUser.body.refresh_token)
      expect([scopeOf(next), await permitted(next)]).toEqual([scope, 200])
    }
  })
})

describe('a client with scopes [S38]', () => {
  test('gets tokens that name only scopes covered by its roles', async () => {
    const scopes = ['orders:read', 'orders:delete', 'openid']
    const client = await gateway.createClient({ scopes, roles: ['clerk'] })
    for (const reply of [
      await gateway.token(client, GRANT),
      await gateway.exchange(client, await login()),
    ])
      expect([scopeOf(reply), await permitted(reply)]).toEqual(['orders:read openid', 200])
    const tooWide = { scope: 'orders:delete' }
    expect(scopeOf(await gateway.token(client, { ...GRANT, ...tooWide }))).toBe('invalid_scope')
    expect(scopeOf(await gateway.exchange(client, await login(), tooWide))).toBe('invalid_scope')
  })

  test('gets what its scopes grant if it has no roles', async () => {
    const client = await gateway.createClient({ scopes: ['orders:read', 'orders:delete'] })
    const own = await gateway.token(client, GRANT)
    expect([scopeOf(own), await permitted(own)]).toEqual(['orders:read orders:delete', 200])
  })

  test('gets what roles grant below a scope that ends with a star, from client to client', async () => {
    const [front, back] = [
      await gateway.createClient({ scopes: ['orders:*'] }),
      await gateway.createClient({ scopes: ['orders:*', 'other:*'] }),
    ]
    const first = await gateway.exchange(front, await login({ roles: ['clerk'] }))
    expect(scopeOf(first)).toBe('orders:read orders:write')
    const next = await gateway.refresh(front, first.body.refresh_token)
    expect(scopeOf(next)).toBe('orders:read orders:write')
    const second = await gateway.exchange(back, next.body.access_token)
    expect([scopeOf(second), await permitted(second)]).toEqual(['orders:read orders:write', 200])
    const third = await gateway.exchange(back, next.body.access_token, { scope: 'orders:read' })
    expect([scopeOf(third), await permitted(third)]).toEqual(['orders:read', 200])
  })

  test('gets no token for a user if the user’s roles grant none of its scopes, because the scope would not narrow it', async () => {
    const client = await gateway.createClient({ scopes: ['orders:delete', 'openid'] })
    expect(scopeOf(await gateway.exchange(client, await login()))).toBe('invalid_scope')
  })
})

test('exchanged and refreshed tokens state the login of the user, and never a newer one [S81]', async () => {
  const client = await gateway.createClient({ roles: ['clerk'] })
  const authTime = Math.floor(Date.now() / 1000) - 500
  const stated = { acr: 'mfa', amr: ['otp'], auth_time: authTime }
  const first = await gateway.exchange(client, await login(stated))
  const next = await gateway.refresh(client, first.body.refresh_token)
  for (const { body } of [first, next]) expect(decodeJwt(body.access_token)).toMatchObject(stated)
  // What the login does not state, the gateway does not add; nor has a client a login of its own.
  const unknown = await gateway.exchange(client, await login({ auth_time: String(authTime) }))
  const own = await gateway.token(client, GRANT)
  for (const { body } of [unknown, own]) {
    const { acr, amr, auth_time: time } = decodeJwt(body.access_token)
    expect([acr, amr, time]).toEqual([undefined, undefined, undefined])
  }
})
