import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import policy from '#policy'
import { createAuthorizer, permissionSet } from '../../src/access/permissions.ts'
import type { Principal } from '../../src/access/principal.ts'

function caller(
  roles: readonly string[],
  scopes: readonly string[] = [],
  scopeUse?: Principal['scopeUse'],
): Principal {
  return {
    issuer: 'https://issuer.test',
    tokenIssuer: 'https://issuer.test',
    subject: 'alice',
    client: undefined,
    tenant: undefined,
    session: undefined,
    roles,
    scopes,
    scopeUse,
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

describe('the shipped policy [S64]', () => {
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
  ])('the role %j is unknown and grants nothing [S25]', (role) => {
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

describe('the scopes of a token of another issuer', () => {
  const roles = new Map([
    ['reader', ['orders:read']],
    ['clerk', ['orders:*']],
    ['admin', ['*']],
  ])
  const isPermitted = createAuthorizer(roles)
  isPermitted.declare(['orders:read', 'orders:write', 'reports:create'])
  const narrowed = (held: string[], scopes: string[], permission: string) =>
    isPermitted(caller(held, scopes, 'narrow'), permission)

  test('narrow: a scope that names no permission of the policy does not narrow roles', () => {
    for (const role of ['reader', 'clerk', 'admin']) {
      for (const scope of [
        'read:orders',
        'urn:zitadel:iam:user:resourceowner',
        'https://www.googleapis.com/auth/userinfo.email',
        'https://api.example.com/orders.read',
        'openid',
        '*',
        ':',
      ])
        expect(narrowed([role], ['openid', scope], 'orders:read'), scope).toBe(true)
    }
  })

  test('narrow: a scope that names a permission of the policy narrows roles to it', () => {
    expect(narrowed(['admin'], ['orders:read'], 'orders:read')).toBe(true)
    expect(narrowed(['admin'], ['orders:read'], 'reports:create')).toBe(false)
    expect(narrowed(['admin'], ['orders:*', 'read:orders'], 'reports:create')).toBe(false)
    expect(narrowed(['admin'], ['orders:*'], 'orders:write')).toBe(true)
    expect(narrowed(['reader'], ['orders:write'], 'orders:read')).toBe(false)
    expect(narrowed(['reader'], ['orders:write'], 'orders:write')).toBe(false)
    // Below a pattern of a role, although no route requires it.
    expect(narrowed(['clerk'], ['orders:archive'], 'orders:read')).toBe(false)
  })

  test('narrow: a permission that a route declares later narrows tokens that were seen before', () => {
    const authorizer = createAuthorizer(roles)
    const token = caller(['admin'], ['audit:read'], 'narrow')
    expect(authorizer(token, 'orders:read')).toBe(true)
    authorizer.declare(['audit:read'])
    expect(authorizer(token, 'orders:read')).toBe(false)
  })

  test('narrow: a token without roles has the permissions that its scopes name', () => {
    expect(narrowed([], ['orders:read'], 'orders:read')).toBe(true)
    expect(narrowed([], ['orders:read'], 'orders:write')).toBe(false)
    expect(narrowed([], ['read:orders'], 'orders:read')).toBe(false)
  })

  test('ignore: scopes neither grant nor narrow', () => {
    const ignored = (held: string[], scopes: string[]) =>
      isPermitted(caller(held, scopes, 'ignore'), 'orders:write')
    expect(ignored(['admin'], ['orders:read'])).toBe(true)
    expect(ignored(['reader'], ['orders:write'])).toBe(false)
    expect(ignored([], ['orders:write'])).toBe(false)
  })

  test('grant: scopes grant in addition to roles', () => {
    const granted = (held: string[], scopes: string[]) =>
      isPermitted(caller(held, scopes, 'grant'), 'orders:write')
    expect(granted(['admin'], ['orders:read'])).toBe(true)
    expect(granted(['reader'], ['orders:write'])).toBe(true)
    expect(granted(['reader'], ['orders:*'])).toBe(true)
    expect(granted([], ['orders:write'])).toBe(true)
    expect(granted(['reader'], ['write:orders', '*', 'orders:read'])).toBe(false)
  })

  test('a token that is issued for a principal is bound by the scopes that bind the principal', () => {
    const { scopesHeldBy } = createAuthorizer(roles)
    const scopes = ['openid', 'read:orders', 'orders:read']
    const of = (held: string[], use?: Principal['scopeUse'], names = scopes) =>
      scopesHeldBy(caller(held, names, use))
    expect(of(['reader'])).toEqual(scopes)
    expect(of(['reader'], 'narrow')).toEqual(['openid', 'orders:read'])
    expect(of(['reader'], 'narrow', ['read:orders'])).toBeUndefined()
    expect(of([], 'narrow')).toEqual(scopes)
    expect(of(['reader'], 'ignore')).toBeUndefined()
    expect(of(['reader'], 'grant')).toBeUndefined()
    expect(of([], 'grant')).toEqual(scopes)
    expect(of(['reader'], undefined, [])).toBeUndefined()
  })
})

describe('the memory of the authorizer', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const CALLERS = 10_000
  /** Two sets, and the entry that leads to them, take 800 bytes. */
  const MOST_BYTES = 200

  test('callers with the same scopes share their sets', () => {
    const isPermitted = createAuthorizer(policy.roles)
    const callers = Array.from({ length: CALLERS }, () => caller(['writer'], ['orders:read']))
    const decide = () => callers.every((each) => isPermitted(each, 'orders:read'))
    collect()
    const before = process.memoryUsage().heapUsed
    expect(decide()).toBe(true)
    collect()
    const bytes = (process.memoryUsage().heapUsed - before) / CALLERS
    expect(decide()).toBe(true)
    expect(bytes).toBeLessThan(MOST_BYTES)
  })

  test('callers with other scopes, or whose issuer lets scopes do something else, share nothing', () => {
    const isPermitted = createAuthorizer(policy.roles)
    const decide = (...of: Parameters<typeof caller>) => isPermitted(caller(...of), 'orders:write')
    expect(decide(['writer'], ['orders:read'])).toBe(false)
    expect(decide(['writer'], ['orders:read', 'orders:write'])).toBe(true)
    expect(decide(['writer'], ['read:orders'])).toBe(false)
    expect(decide(['writer'], ['read:orders'], 'narrow')).toBe(true)
    expect(decide(['writer'], ['read:orders'])).toBe(false)
  })
})
