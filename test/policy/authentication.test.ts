/** The field `authentication` of a route, and the same demand in `session`. */
import { describe, expect, test } from 'vitest'
import { signIn } from '../../src/features/sign-in/index.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { findLookAlikes } from '../../src/policy/look-alikes.ts'
import { definePolicy } from '../../src/policy/policy.ts'

type Demands = Pick<RouteDefinition, 'authentication' | 'session'>

function routesOf(...rows: readonly Demands[]) {
  return definePolicy({
    roles: {},
    limits: {},
    features: [signIn()],
    routes: rows.map((demands, index) => ({
      method: 'GET',
      path: index === 0 ? '/admin' : '/:page',
      permission: 'a:b',
      ...demands,
    })),
  }).routes
}

describe('session and authentication', () => {
  test.each<readonly [string, Demands, object | undefined]>([
    ['neither', { session: 'browser' }, undefined],
    ['the alias', { session: { acr: ['mfa'] } }, { acr: ['mfa'] }],
    ['both, equal', { session: { acr: ['a'] }, authentication: { acr: ['a'] } }, { acr: ['a'] }],
    [
      'one field in each',
      { session: { acr: ['mfa'] }, authentication: { maxAgeSeconds: 60 } },
      { acr: ['mfa'], maxAgeSeconds: 60 },
    ],
    [
      'an undefined field',
      { session: { acr: ['a'] }, authentication: { acr: undefined } },
      { acr: ['a'] },
    ],
  ])('make one demand: %s', (_name, demands, authentication) => {
    expect(routesOf(demands)).toMatchObject([{ session: 'browser' }])
    expect(routesOf(demands)[0]?.authentication).toEqual(authentication)
  })

  test.each<readonly [RegExp, Demands]>([
    [
      /authentication\.acr and session\.acr differ/,
      { session: { acr: ['mfa'] }, authentication: { acr: ['pwd'] } },
    ],
    [
      /authentication\.acr and session\.acr differ/,
      { session: { acr: ['a', 'b'] }, authentication: { acr: ['b', 'a'] } },
    ],
    [
      /authentication\.maxAgeSeconds and .* differ/,
      { session: { maxAgeSeconds: 60 }, authentication: { maxAgeSeconds: 61 } },
    ],
  ])('with different values are a mistake: %s', (mistake, demands) => {
    expect(() => routesOf(demands)).toThrow(mistake)
  })
})

test('another spelling of a path does not avoid the demand for tokens', () => {
  const refuses = (...rows: readonly Demands[]) => {
    const routes = routesOf(...rows)
    const page = routes.find(({ path }) => path === '/:page')
    return page !== undefined && findLookAlikes(page, routes).length > 0
  }
  const strong: Demands = { authentication: { acr: ['mfa'] } }
  expect(refuses(strong, {})).toBe(true)
  expect(refuses(strong, { authentication: { maxAgeSeconds: 1 } })).toBe(true)
  expect(refuses(strong, strong)).toBe(false)
  expect(refuses({}, strong)).toBe(false)
})
