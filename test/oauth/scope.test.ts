import { describe, expect, test } from 'vitest'
import { createAuthorizer, createScopeOfRoles } from '../../src/authorization/permissions.ts'
import { principalOfGrant } from '../../src/oauth/actor.ts'
import { grantedScope } from '../../src/oauth/scope.ts'
import { checkOf } from './denial.ts'

type Names = readonly string[]

const policyRoles = new Map<string, Names>([
  ['reader', ['a:r', 'b:r']],
  ['writer', ['a:*', 'c:w']],
  ['all', ['*']],
])
const scopeOfRoles = createScopeOfRoles(policyRoles)

/** One bound alone is both: that of a session, or of a client that asks for itself. */
const granted = (
  requested: string | undefined,
  [bound, held = bound]: readonly [Names | undefined, Names?],
  roles: Names = ['reader'],
) => checkOf(() => grantedScope(requested, { bound, held, roles, scopeOfRoles }).join(' '))

/** Of a client without scopes. */
const unbound = (requested: string | undefined, held?: Names, roles: Names = ['reader']) =>
  checkOf(() => grantedScope(requested, { bound: undefined, held, roles, scopeOfRoles }).join(' '))

const hundred = Array.from({ length: 100 }, (_, at) => `a${at}`)

describe('a scope', () => {
  test.each([
    ['all that is allowed, where nothing is asked', undefined, [['a:r', 'b:r']], 'a:r b:r'],
    [
      'what every bound allows',
      undefined,
      [
        ['a:r', 'b:r'],
        ['b:r', 'c:r'],
      ],
      'b:r',
    ],
    ['of two patterns the narrower one', undefined, [['a:*'], ['a:r', 'b:r']], 'a:r'],
    ['of two patterns the narrower one, if it comes first', undefined, [['a:r'], ['a:*']], 'a:r'],
    ['empty, where every bound is empty', undefined, [[]], ''],
    ['up to 100 names', hundred.join(' '), [hundred], hundred.join(' ')],
    ['nothing, where nothing bounds it', undefined, [undefined], ''],
    ['what is asked, within its bounds', 'b:r', [['a:r', 'b:r']], 'b:r'],
    ['what is asked, below a pattern', 'a:r', [['a:*']], 'a:r'],
    [
      'of what a bound allows, what roles grant',
      undefined,
      [['a:r', 'd:r', 'openid']],
      'a:r openid',
    ],
    ['of a pattern, what roles grant', undefined, [['a:*', 'd:*']], 'a:r'],
    ['what is asked, once each', 'b:r b:r', [['a:r', 'b:r']], 'b:r'],
    ['what narrows roles, where nothing bounds it', 'b:r', [undefined], 'b:r'],
    ['names that are no permissions', 'openid', [['openid', 'profile']], 'openid'],
  ] as const)('is %s', (_, requested, bounds, expected) => {
    expect(granted(requested, bounds)).toBe(expected)
  })

  test.each([
    ['beyond a bound', 'b:r', [['a:r']], 'scope_exceeded'],
    ['beyond a pattern with the same first letters', 'ab:r', [['a:*']], 'scope_exceeded'],
    ['beyond the roles', 'd:r', [['a:r', 'd:r']], 'scope_beyond_roles'],
    ['partly beyond the roles', 'a:r d:r', [['a:r', 'd:r']], 'scope_beyond_roles'],
    ['a pattern of which roles grant a part', 'a:*', [['a:*']], 'scope_beyond_roles'],
    [
      'a pattern beyond the roles, where nothing bounds it',
      'a:*',
      [undefined],
      'scope_beyond_roles',
    ],
    ['a word, where nothing bounds it', 'superuser', [undefined], 'scope_exceeded'],
    ['a word beside permissions', 'a:r superuser', [undefined], 'scope_exceeded'],
    ['a bound that no role meets', undefined, [['d:r', 'openid']], 'scope_unbounded'],
    ['beyond one of two bounds', 'a:r', [['a:r'], ['b:r']], 'scope_exceeded'],
    ['partly beyond a bound', 'a:r c:r', [['a:r']], 'scope_exceeded'],
    ['a pattern that a bound does not have', 'a:*', [['a:r']], 'scope_exceeded'],
    ['anything of a session without scope', 'a:r', [[]], 'scope_exceeded'],
    ['empty where bounds do not meet', undefined, [['a:r'], ['b:r']], 'scope_unbounded'],
    ['empty where plain bounds do not meet', undefined, [['openid'], ['email']], 'scope_empty'],
    [
      'without permissions where a bound has some',
      'openid',
      [['a:r', 'openid']],
      'scope_unbounded',
    ],
    ['with a quote', 'a"', [undefined], 'scope_malformed'],
    ['with two spaces', 'a:r  b:r', [undefined], 'scope_malformed'],
    ['of a space', ' ', [undefined], 'scope_malformed'],
    [
      'too long',
      Array.from({ length: 101 }, (_, at) => `a${at}`).join(' '),
      [undefined],
      'scope_malformed',
    ],
  ] as const)('is refused: %s', (_, requested, bounds, check) => {
    expect(granted(requested, bounds)).toBe(`invalid_scope:${check}`)
  })

  test('is refused where nobody grants it: permissions without roles and without a bound', () => {
    expect(granted('portcullis:clients:create', [undefined], [])).toBe(
      'invalid_scope:scope_ungranted',
    )
    expect(granted('openid', [undefined], [])).toBe('invalid_scope:scope_exceeded')
  })

  test('of a login narrows it, and is not left, whatever else its roles grant', () => {
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

  test('of a login that names no permission leaves its roles to be narrowed', () => {
    expect(unbound('a:r', ['openid'])).toBe('a:r')
    expect(unbound('d:r', ['openid'])).toBe('invalid_scope:scope_beyond_roles')
    expect(unbound('a:r', ['openid'], [])).toBe('invalid_scope:scope_ungranted')
  })

  test('is what any of the roles grants, by pattern too, but for roles that nobody knows', () => {
    expect(unbound('a:x c:w b:r', undefined, ['reader', 'writer'])).toBe('a:x c:w b:r')
    expect(unbound('a:*', undefined, ['writer'])).toBe('a:*')
    expect(unbound('x:y:*', undefined, ['all'])).toBe('x:y:*')
    for (const role of ['unknown', 'constructor', '__proto__'])
      expect(unbound('a:r', undefined, [role])).toBe('invalid_scope:scope_beyond_roles')
  })

  test('is refused where only the bound of a client names it: that grants nobody anything', () => {
    const ask = (requested?: string, roles: readonly string[] = []) =>
      checkOf(() =>
        grantedScope(requested, {
          ...{ bound: ['a:r', 'openid'], held: undefined, roles, scopeOfRoles },
        }).join(' '),
      )
    expect(ask('a:r')).toBe('invalid_scope:scope_ungranted')
    expect(ask()).toBe('invalid_scope:scope_ungranted')
    expect(ask('a:r', ['reader'])).toBe('a:r')
  })

  test('never permits more than its bounds and the roles do, whatever is asked', () => {
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
        for (const asked of subsets) {
          const scope = granted(asked.join(' ') || undefined, [bound], roles)
          if (scope.startsWith('invalid_scope:')) continue
          grants += 1
          const named = scope === '' ? [] : scope.split(' ')
          const got = permitted(roles, named)
          const most = permitted(roles, bound ?? [])
          const tried = `${roles} ${bound} ${asked}`
          expect(
            got.filter((one) => !most.includes(one)),
            tried,
          ).toEqual([])
          if (asked.length === 0) expect(got, tried).toEqual(most)
          if (roles.length === 0) continue
          // Origins read it, too: it names nothing that the roles do not grant.
          for (const name of named.filter((one) => one.includes(':')))
            expect(scopeOfRoles(roles, name), tried).toEqual([name])
        }
    expect(grants).toBeGreaterThan(500)
  })
})
