import { describe, expect, expectTypeOf, test } from 'vitest'
import * as z from 'zod/mini'
import { override } from '../../../src/features/openapi-routes/index.ts'
import type { RouteDefinition } from '../../../src/policy/definition.ts'

const query = z.strictObject({})
const body = z.looseObject({})
const routes = [
  { method: 'GET', path: '/orders/:id', permission: 'orders:read', input: { query } },
  { method: 'POST', path: '/orders', permission: 'orders:write', input: { query, body } },
] as const satisfies readonly RouteDefinition[]

describe('override', () => {
  test('replaces fields of one route, and parts of its input', () => {
    const other = z.strictObject({})
    const changed = override(routes, {
      'POST /orders': { limits: ['standard'], input: { body: other } },
    })
    expect(changed).toEqual([
      routes[0],
      { ...routes[1], limits: ['standard'], input: { query, body: other } },
    ])
    expect(changed[1]?.input?.body).toBe(other)
    expectTypeOf(changed).toEqualTypeOf<RouteDefinition<'standard', never>[]>()
  })

  test('removes fields, parts of the input, and routes', () => {
    expect(
      override(routes, { 'GET /orders/:id': null, 'POST /orders': { input: { body: undefined } } }),
    ).toEqual([{ ...routes[1], input: { query } }])
  })

  test('anonymous replaces the permission, and the permission anonymous', () => {
    const [open] = override(routes, { 'GET /orders/:id': { anonymous: true } })
    expect(open).toEqual({ method: 'GET', path: '/orders/:id', anonymous: true, input: { query } })
    const closed = override([{ method: 'GET', path: '/a', anonymous: true }], {
      'GET /a': { permission: 'a:read' },
    })
    expect(closed).toEqual([{ method: 'GET', path: '/a', permission: 'a:read' }])
  })

  test('refuses a change of a route that does not exist', () => {
    const changes = { 'GET /order/:id': { limits: [] } }
    // @ts-expect-error The name is not that of a route.
    expect(() => override(routes, { 'GET /order/:id': { limits: [] } })).toThrow(
      /override: there is no route GET \/order\/:id/,
    )
    expect(() => override(routes as readonly RouteDefinition[], changes)).toThrow(/no route/)
  })
})
