import { describe, expect, test } from 'vitest'
import { createAuthorizer } from '../../src/authorization/permissions.ts'
import { principalOfGrant } from '../../src/oauth/actor.ts'
import { grantedScope } from '../../src/oauth/scope.ts'
import { checkOf } from './denial.ts'

const granted = (
  requested: string | undefined,
  bounds: readonly (readonly string[] | undefined)[],
  roles: readonly string[] = ['reader'],
) => checkOf(() => grantedScope(requested, { bounds, roles, granted: bounds[0] }).join(' '))

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
    ['nothing, where nothing bounds it', undefined, [undefined, undefined], ''],
    ['what is asked, within its bounds', 'b:r', [['a:r', 'b:r'], undefined], 'b:r'],
    ['what is asked, once each', 'b:r b:r', [['a:r', 'b:r']], 'b:r'],
    ['what narrows roles, where nothing bounds it', 'b:r', [undefined], 'b:r'],
    ['names that are no permissions', 'openid', [['openid', 'profile']], 'openid'],
  ] as const)('is %s', (_, requested, bounds, expected) => {
    expect(granted(requested, bounds)).toBe(expected)
  })

  test.each([
    ['beyond a bound', 'c:r', [['a:r'], undefined], 'scope_exceeded'],
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
    expect(granted('openid', [undefined], [])).toBe('openid')
  })

  test('is refused where only the bound of a client names it: that grants nobody anything', () => {
    const ask = (requested?: string, roles: readonly string[] = []) =>
      checkOf(() =>
        grantedScope(requested, { bounds: [['a:r', 'openid']], roles, granted: undefined }).join(
          ' ',
        ),
      )
    expect(ask('a:r')).toBe('invalid_scope:scope_ungranted')
    expect(ask()).toBe('invalid_scope:scope_ungranted')
    expect(ask('a:r', ['reader'])).toBe('a:r')
  })

  test('never permits more than its bounds and the roles do, whatever is asked', () => {
    const names = ['a:r', 'a:w', 'b:r', 'openid', 'a:*']
    const isPermitted = createAuthorizer(new Map([['reader', ['a:r', 'b:r']]]))
    const permitted = (roles: readonly string[], scopes: readonly string[]) => {
      const grant = { subject: 's', client: 'c', audiences: ['x'], roles, scopes }
      const principal = principalOfGrant(grant, 'https://gateway.test')
      return ['a:r', 'a:w', 'b:r'].filter((permission) => isPermitted(principal, permission))
    }
    const subsets = Array.from({ length: 2 ** names.length }, (_, bits) =>
      names.filter((_, at) => bits & (1 << at)),
    )
    let grants = 0
    for (const roles of [[], ['reader'], ['unknown']])
      for (const bound of [undefined, ...subsets.filter(({ length }) => length > 0)])
        for (const asked of subsets) {
          const scope = granted(asked.join(' ') || undefined, [bound], roles)
          if (scope.startsWith('invalid_scope:')) continue
          grants += 1
          const got = permitted(roles, scope === '' ? [] : scope.split(' '))
          const most = permitted(roles, bound ?? [])
          expect(
            got.filter((one) => !most.includes(one)),
            `${roles} ${bound} ${asked}`,
          ).toEqual([])
        }
    expect(grants).toBeGreaterThan(500)
  })
})
