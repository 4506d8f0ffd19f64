import { describe, expect, test } from 'vitest'
import policy from '#policy'
import { createAuthorizer, permissionSet } from '../../src/authorization/permissions.ts'
import type { Principal } from '../../src/identity/principal.ts'

function caller(roles: readonly string[], scopes: readonly string[] = []): Principal {
  return {
    issuer: 'https://issuer.test',
    tokenIssuer: 'https://issuer.test',
    subject: 'alice',
    client: undefined,
    tenant: undefined,
    session: undefined,
    roles,
    scopes,
    tokenId: undefined,
    tokenIdHash: undefined,
    confirmation: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: 1,
  }
}

describe('permission patterns', () => {
  test.each([
    ['orders:read', 'orders:read', true],
    ['orders:*', 'orders:read', true],
    ['orders:*', 'orders:lines:read', true],
    ['orders:lines:*', 'orders:lines:read', true],
    ['*', 'orders:read', true],
    ['orders:read', 'orders:readx', false],
    ['orders:read', 'orders:write', false],
    ['orders:lines:*', 'orders:read', false],
    ['orders:*', 'orders', false],
    ['orders:*', 'ordersx:read', false],
    ['order*', 'orders:read', false],
    ['Orders:read', 'orders:read', false],
    ['orders', 'orders:read', false],
    ['', 'orders:read', false],
    [':*', 'orders:read', false],
    ['**', 'orders:read', false],
    [' orders:read', 'orders:read', false],
  ])('%s covers %s: %s', (pattern, permission, covered) => {
    expect(permissionSet([pattern]).covers(permission)).toBe(covered)
  })
})

describe('S64: the shipped policy', () => {
  const isPermitted = createAuthorizer(policy.roles)
  // Copied by hand from the table of the documentation, not from the policy.
  const oracle: Record<string, readonly string[]> = {
    reader: ['orders:read'],
    writer: ['orders:read', 'orders:write'],
    admin: ['orders:read', 'orders:write', 'orders:delete', 'reports:create'],
    operator: [],
  }
  const permissions = ['orders:read', 'orders:write', 'orders:delete', 'reports:create']

  test.each(Object.entries(oracle))(
    '%s has the permissions of the table and no others',
    (role, may) => {
      for (const permission of permissions) {
        expect(isPermitted(caller([role]), permission), permission).toBe(may.includes(permission))
      }
    },
  )

  test.each([
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    'Reader',
    'reader ',
    ' reader',
    'reader,writer',
    '',
    '*',
    'orders:read',
  ])('S25: the role %j is unknown and grants nothing', (role) => {
    for (const permission of permissions) {
      expect(isPermitted(caller([role]), permission)).toBe(false)
    }
  })

  test('without roles and scopes there is no permission', () => {
    expect(isPermitted(caller([]), 'orders:read')).toBe(false)
  })

  test('scopes narrow the permissions of roles and never widen them', () => {
    expect(isPermitted(caller(['admin'], ['orders:read']), 'orders:read')).toBe(true)
    expect(isPermitted(caller(['admin'], ['orders:read']), 'orders:write')).toBe(false)
    expect(isPermitted(caller(['reader'], ['orders:write']), 'orders:write')).toBe(false)
    expect(isPermitted(caller(['reader'], ['*']), 'orders:write')).toBe(false)
  })

  test('scopes that name no permission do not narrow', () => {
    expect(isPermitted(caller(['reader'], ['openid', 'profile']), 'orders:read')).toBe(true)
  })

  test('a token without roles has the permissions that its scopes name', () => {
    expect(isPermitted(caller([], ['orders:read']), 'orders:read')).toBe(true)
    expect(isPermitted(caller([], ['orders:read']), 'orders:write')).toBe(false)
    expect(isPermitted(caller([], ['orders:*']), 'orders:delete')).toBe(true)
    expect(isPermitted(caller([], ['openid']), 'orders:read')).toBe(false)
  })
})
