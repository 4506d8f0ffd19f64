import { describe, expect, test } from 'vitest'
import { createAuthorizer, createScopeOfRoles } from '../../../src/access/permissions.ts'
import { principalOfGrant } from '../../../src/access/tokens/access-grant.ts'
import { Denied } from '../../../src/errors.ts'
import { grantedScope } from '../../../src/features/authorization-server/scope.ts'

type Names = readonly string[]

const policyRoles = new Map<string, Names>([
  ['reader', ['a:r', 'b:r']],
  ['writer', ['a:*', 'c:w']],
  ['all', ['*']],
])
const scopeOfRoles = createScopeOfRoles(policyRoles)

/** Returns the value, or `error:check` of the refusal. */
function checkOf(decide: () => string): string {
  try {
    return decide()
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'oauth_refused') throw error
    return `${error.denial.error}:${error.denial.check}`
  }
}

/** Grants a scope. One bound alone counts as both: a session, or a client that acts for itself. */
const granted = (
  requested: string | undefined,
  [bound, held = bound]: readonly [Names | undefined, Names?],
  roles: Names = ['reader'],
) => checkOf(() => grantedScope(requested, { bound, held, roles, scopeOfRoles }).join(' '))

/** Grants a scope for a client without scopes. */
const unbound = (requested: string | undefined, held?: Names, roles: Names = ['reader']) =>
  checkOf(() => grantedScope(requested, { bound: undefined, held, roles, scopeOfRoles }).join(' '))

const hundred = Array.from({ length: 100 }, (_, at) => `a${at}`)

describe('a granted scope', () => {
  test.each([
    ['all that the bound allows if none is requested', undefined, [['a:r', 'b:r']], 'a:r b:r'],
    [
      'what every bound allows',
      undefined,
      [
        ['a:r', 'b:r'],
        ['b:r', 'c:r'],
      ],
      'b:r',
    ],
    ['the narrower one of two patterns', undefined, [['a:*'], ['a:r', 'b:r']], 'a:r'],
    ['the narrower one of two patterns in the other order', undefined, [['a:r'], ['a:*']], 'a:r'],
    ['empty if every bound is empty', undefined, [[]], ''],
    ['up to 100 names', hundred.join(' '), [hundred], hundred.join(' ')],
    ['empty if there is no bound', undefined, [undefined], ''],
    ['the requested name within its bounds', 'b:r', [['a:r', 'b:r']], 'b:r'],
    ['the requested name below a pattern', 'a:r', [['a:*']], 'a:r'],
    ['the part of a bound that roles grant', undefined, [['a:r', 'd:r', 'openid']], 'a:r openid'],
    ['the part of a pattern that roles grant', undefined, [['a:*', 'd:*']], 'a:r'],
    ['each requested name once', 'b:r b:r', [['a:r', 'b:r']], 'b:r'],
    ['a requested part of the roles if there is no bound', 'b:r', [undefined], 'b:r'],
    ['names with more spaces than needed', ' a:r  b:r ', [['a:r', 'b:r']], 'a:r b:r'],
    ['names that are not permissions', 'openid', [['openid', 'profile']], 'openid'],
  ] as const)('is %s', (_, requested, bounds, expected) => {
    expect(granted(requested, bounds)).toBe(expected)
  })

  test.each([
    ['a name beyond the bound', 'b:r', [['a:r']], 'scope_exceeded'],
    ['a name beyond a pattern with the same first letters', 'ab:r', [['a:*']], 'scope_exceeded'],
    ['a name beyond the roles', 'd:r', [['a:r', 'd:r']], 'scope_beyond_roles'],
    ['a scope that is partly beyond the roles', 'a:r d:r', [['a:r', 'd:r']], 'scope_beyond_roles'],
    ['a pattern that the roles grant in part', 'a:*', [['a:*']], 'scope_beyond_roles'],
    ['a pattern beyond the roles without a bound', 'a:*', [undefined], 'scope_beyond_roles'],
    ['a plain word without a bound', 'superuser', [undefined], 'scope_exceeded'],
    ['a plain word beside permissions', 'a:r superuser', [undefined], 'scope_exceeded'],
    ['a bound that no role covers', undefined, [['d:r', 'openid']], 'scope_unbounded'],
    ['a name beyond one of two bounds', 'a:r', [['a:r'], ['b:r']], 'scope_exceeded'],
    ['a scope that is partly beyond a bound', 'a:r c:r', [['a:r']], 'scope_exceeded'],
    ['a pattern that a bound does not have', 'a:*', [['a:r']], 'scope_exceeded'],
    ['any name for a session without scope', 'a:r', [[]], 'scope_exceeded'],
    ['bounds without a common permission', undefined, [['a:r'], ['b:r']], 'scope_unbounded'],
    ['bounds without a common plain word', undefined, [['openid'], ['email']], 'scope_empty'],
    [
      'a scope without permissions if the bound has some',
      'openid',
      [['a:r', 'openid']],
      'scope_unbounded',
    ],
    ['a quote', 'a"', [undefined], 'scope_malformed'],
    ['two names with a tab between them', 'a:r\tb:r', [undefined], 'scope_malformed'],
    ['nothing but spaces', '  ', [undefined], 'scope_malformed'],
    [
      'more than 100 names',
      Array.from({ length: 101 }, (_, at) => `a${at}`).join(' '),
      [undefined],
      'scope_malformed',
    ],
  ] as const)('is refused: %s', (_, requested, bounds, check) => {
    expect(granted(requested, bounds)).toBe(`invalid_scope:${check}`)
  })

  test('is refused for a permission without roles and without a bound', () => {
    expect(granted('portcullis:clients:create', [undefined], [])).toBe(
      'invalid_scope:scope_ungranted',
    )
    expect(granted('openid', [undefined], [])).toBe('invalid_scope:scope_exceeded')
  })

  test('of a login with permissions stays within them, even if its roles grant more', () => {
    expect(unbound(undefined, ['a:r', 'openid'])).toBe('a:r openid')
    expect(unbound('a:r', ['a:r', 'openid'])).toBe('a:r')
    expect(unbound('openid', ['openid'])).toBe('openid')
    expect(unbound('b:r', ['a:r'])).toBe('invalid_scope:scope_exceeded')
    expect(unbound('b:r', ['a:r', 'openid'])).toBe('invalid_scope:scope_exceeded')
    expect(unbound('email', ['openid'])).toBe('invalid_scope:scope_exceeded')
    expect(unbound('openid', ['a:r', 'openid'])).toBe('invalid_scope:scope_unbounded')
    expect(unbound(undefined, ['a:r', 'd:r'])).toBe('a:r')
    expect(unbound('d:r', ['a:r', 'd:r'])).toBe('invalid_scope:scope_beyond_roles')
    expect(unbound('d:r', ['d:r'], [])).toBe('d:r')
  })

  test('of a login without permissions narrows the roles', () => {
    expect(unbound('a:r', ['openid'])).toBe('a:r')
    expect(unbound('d:r', ['openid'])).toBe('invalid_scope:scope_beyond_roles')
    expect(unbound('a:r', ['openid'], [])).toBe('invalid_scope:scope_ungranted')
  })

  test('is what any known role grants, patterns included, and unknown roles grant nothing', () => {
    expect(unbound('a:x c:w b:r', undefined, ['reader', 'writer'])).toBe('a:x c:w b:r')
    expect(unbound('a:*', undefined, ['writer'])).toBe('a:*')
    expect(unbound('x:y:*', undefined, ['all'])).toBe('x:y:*')
    for (const role of ['unknown', 'constructor', '__proto__'])
      expect(unbound('a:r', undefined, [role])).toBe('invalid_scope:scope_beyond_roles')
  })

  test('is refused if only the scopes of the client name it, because those grant nothing by themselves', () => {
    const scopeFor = (requested?: string, roles: readonly string[] = []) =>
      checkOf(() =>
        grantedScope(requested, {
          bound: ['a:r', 'openid'],
          held: undefined,
          roles,
          scopeOfRoles,
        }).join(' '),
      )
    expect(scopeFor('a:r')).toBe('invalid_scope:scope_ungranted')
    expect(scopeFor()).toBe('invalid_scope:scope_ungranted')
    expect(scopeFor('a:r', ['reader'])).toBe('a:r')
  })

  test('never permits more than its bounds and the roles, for every request', () => {
    const names = ['a:r', 'a:w', 'b:r', 'openid', 'a:*']
    const isPermitted = createAuthorizer(policyRoles)
    const permitted = (roles: readonly string[], scopes: readonly string[]) => {
      const grant = { subject: 's', client: 'c', audiences: ['x'], roles, scopes }
      const principal = principalOfGrant(grant, 'https://gateway.test')
      return ['a:r', 'a:w', 'b:r'].filter((permission) => isPermitted(principal, permission))
    }
    const subsets = Array.from({ length: 2 ** names.length }, (_, bits) =>
      names.filter((_, at) => bits & (1 << at)),
    )
    let grants = 0
    for (const roles of [[], ['reader'], ['writer'], ['reader', 'writer'], ['unknown']])
      for (const bound of [undefined, ...subsets.filter(({ length }) => length > 0)])
        for (const requestedNames of subsets) {
          const scope = granted(requestedNames.join(' ') || undefined, [bound], roles)
          if (scope.startsWith('invalid_scope:')) continue
          grants += 1
          const named = scope === '' ? [] : scope.split(' ')
          const got = permitted(roles, named)
          const most = permitted(roles, bound ?? [])
          const tried = `${roles} ${bound} ${requestedNames}`
          expect(
            got.filter((one) => !most.includes(one)),
            tried,
          ).toEqual([])
          if (requestedNames.length === 0) expect(got, tried).toEqual(most)
          if (roles.length === 0) continue
          // Origins read the scope as well: it names only what the roles grant.
          for (const name of named.filter((one) => one.includes(':')))
            expect(scopeOfRoles(roles, name), tried).toEqual([name])
        }
    expect(grants).toBeGreaterThan(500)
  })
})
