import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { Misconfigured } from '../../src/errors.ts'
import { upstash } from '../../src/features/upstash/index.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { definePolicy } from '../../src/policy/policy.ts'

const limit = { limit: 1, windowSeconds: 1, by: 'subject', onUnavailable: 'deny' } as const

function mistakesOf(...routes: readonly object[]): readonly string[] {
  try {
    definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { standard: limit },
      routes: routes as RouteDefinition<'standard'>[],
    })
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return error.mistakes
  }
}

const route = { method: 'GET', path: '/a', permission: 'orders:read' }

describe('a policy [R31]', () => {
  test('that is valid has its defaults filled in', () => {
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { standard: limit },
      routes: [
        { method: 'GET', path: '/a', permission: 'orders:read', limits: ['standard'] },
        { method: 'GET', path: '/b', anonymous: true },
      ],
    })
    expect(policy.routes[0]).toMatchObject({
      limits: [{ name: 'standard', limit: 1 }],
      maxBodyBytes: 1_048_576,
      originTimeoutMs: 15_000,
      forwardAuthorization: false,
    })
    expect(policy.routes[1]?.permission).toBeUndefined()
  })

  test.each([
    ['100/min', 100, 60],
    ['30/60s', 30, 60],
    ['1000/h', 1_000, 3_600],
    ['5000/d', 5_000, 86_400],
    ['1/15min', 1, 900],
  ] as const)('may state a limit as text: %s', (text, units, windowSeconds) => {
    const { limits, routes } = definePolicy({
      roles: {},
      limits: { standard: text },
      routes: [{ ...route, method: 'GET', limits: ['standard'] }],
    })
    const standard = { name: 'standard', ...limit, limit: units, windowSeconds }
    expect(limits.get('standard')).toEqual(standard)
    expect(routes[0]?.limits).toEqual([standard])
  })

  test.each([
    '',
    '100',
    '100/',
    '/min',
    '0/min',
    '-1/min',
    '1.5/min',
    '100/m',
    '100 / min',
    '1/0s',
  ])('is refused for a limit "%s"', (text) => {
    const define = () =>
      definePolicy({ roles: {}, limits: { standard: text as '1/s' }, routes: [] })
    expect(define).toThrow(
      'limits.standard: must be an object, or a text such as 100/min, 30/60s or 1000/h',
    )
  })

  test('is refused for a text with a window that is too long', () => {
    const define = () => definePolicy({ roles: {}, limits: { standard: '1/2d' }, routes: [] })
    expect(define).toThrow(/limits\.standard\.windowSeconds: /)
  })

  test('is refused if a limit costs more than its capacity, or has a cost where cost is not counted', () => {
    const define = (limits: object) => () =>
      definePolicy({
        roles: {},
        limits: { expensive: { ...limit, limit: 5, ...limits } },
        routes: [{ method: 'GET', path: '/a', anonymous: true }],
      })
    for (const wrong of [
      { cost: 6 },
      { cost: 0 },
      { cost: 1.5 },
      { cost: 2, engine: upstash() },
      { engine: 'approximate' },
    ])
      expect(define(wrong), JSON.stringify(wrong)).toThrow(Misconfigured)
    expect(define({ engine: 'upstash' })).toThrow(
      "limits.expensive.engine: must be the result of upstash(); import { upstash } from 'portcullis/upstash'",
    )
    for (const right of [{ cost: 5 }, { cost: 1, engine: upstash() }, { engine: 'exact' }])
      expect(define(right)().limits.get('expensive')).toMatchObject(right)
  })

  test('keeps the mode of limits and permissions in observe mode', () => {
    const policy = definePolicy({
      roles: {},
      limits: { watched: { ...limit, mode: 'observe' } },
      routes: [
        {
          method: 'GET',
          path: '/a',
          permission: { name: 'orders:read', mode: 'observe' },
          limits: ['watched'],
        },
        { method: 'GET', path: '/b', permission: { name: 'orders:read' } },
      ],
    })
    expect(policy.routes[0]).toMatchObject({
      permission: 'orders:read',
      permissionMode: 'observe',
      limits: [{ name: 'watched', mode: 'observe' }],
    })
    expect(policy.routes[1]).toMatchObject({ permission: 'orders:read' })
    expect(policy.routes[1]?.permissionMode).toBeUndefined()
  })

  test.each([
    ['neither permission nor anonymous', { ...route, permission: undefined }, /exactly one/],
    ['both permission and anonymous', { ...route, anonymous: true }, /exactly one/],
    [
      'a schema of parameters that the path does not have',
      { ...route, path: '/a/:id', input: { params: z.strictObject({ orderId: z.string() }) } },
      /input\.params: the path has no parameter :orderId/,
    ],
    ['an unknown option', { ...route, allow: 'all' }, /allow/i],
    ['an unknown method', { ...route, method: 'TRACE' }, /method/],
    [
      'a path that the gateway reserves',
      { ...route, path: '/-/admin' },
      /reserved for the gateway/,
    ],
    [
      'a path of the authorization server',
      { ...route, path: '/oauth/token' },
      /reserved for the gateway/,
    ],
    ['an unknown limit', { ...route, limits: ['fast'] }, /unknown limit fast/],
    ['a permission without a verb', { ...route, permission: 'orders' }, /permission/],
    ['a permission without a name', { ...route, permission: { mode: 'observe' } }, /permission/],
    [
      'an unknown mode',
      { ...route, permission: { name: 'orders:read', mode: 'shadow' } },
      /permission\.mode: must be 'enforce' or 'observe'/,
    ],
    [
      'an anonymous route with a permission in observe mode',
      { ...route, anonymous: true, permission: { name: 'orders:read', mode: 'observe' } },
      /exactly one/,
    ],
    ['a body for a GET', { ...route, input: { body: z.strictObject({}) } }, /no body/],
    ['an invalid schema', { ...route, input: { query: {} } }, /zod schema/],
    ['a schema that drops keys', { ...route, input: { query: z.object({}) } }, /strictObject/],
    [
      'anonymous callers limited by subject',
      { method: 'GET', path: '/a', anonymous: true, limits: ['standard'] },
      /no subject/,
    ],
  ])('with %s is refused', (_, bad, message) => {
    const mistakes = mistakesOf(bad)
    expect(mistakes.length).toBe(1)
    expect(mistakes[0]).toMatch(message)
  })

  test.each([
    ['/a', '/a'],
    ['/a/:id', '/a/:name'],
    ['/a/:id', '/a/secret'],
    ['/a/*', '/a/secret'],
    ['/a/*', '/a/secret/:id'],
    ['/*', '/a'],
    ['/:x/:y', '/a/b'],
    ['/a/*', '/a'],
    ['/a/*', '/a/'],
    ['/a/:id?', '/a'],
    ['/a/:id?', '/a/secret'],
    ['/a/*', '/a/:id?'],
  ])('with %s above %s is refused, because the second route is unreachable', (above, below) => {
    const rows = [
      { method: 'GET', path: above, anonymous: true },
      { ...route, path: below },
    ]
    expect(mistakesOf(...rows)).toEqual([
      `GET ${below}: is unreachable, because ${above} above it matches the same requests`,
    ])
  })

  test.each([
    ['/a/secret', '/a/:id'],
    ['/a/secret', '/a/*'],
    ['/a/:id', '/a/:id/b'],
    ['/a/:id{[0-9]+}', '/a/b'],
    ['/b', '/a'],
    ['/a/:id', '/a/:id?'],
    ['/a/:id', '/a/'],
  ])('with %s above %s is valid', (above, below) => {
    expect(mistakesOf({ ...route, path: above }, { ...route, path: below })).toEqual([])
  })

  test.each([
    'a',
    '//a',
    '/a//b',
    '/a/../b',
    '/a;b',
    '/a?b',
    '/a b',
    '/a/:id{[}',
    '/a/:id/b/:id',
    '/a/:id/b/:id{[0-9]+}?',
    '/*/a',
    '/a%2f',
    '',
  ])('with the path %j is refused, because no request has it', (path) => {
    expect(mistakesOf({ ...route, path })).toEqual([expect.stringMatching(/path pattern/)])
  })

  test.each([
    [{ method: 'POST' }, /^POST \/a: coalesce requires GET$/],
    [{ webSocketOrigins: ['https://app.test'] }, /^GET \/a: coalesce .* webSocketOrigins$/],
    [{ forwardAuthorization: true }, /^GET \/a: coalesce .* forwardAuthorization$/],
    [{ coalesce: 'yes' }, /coalesce/],
  ])('with the coalescing option %j is refused', (option, message) => {
    expect(mistakesOf({ ...route, coalesce: true, ...option })).toEqual([
      expect.stringMatching(message),
    ])
    expect(mistakesOf({ ...route, coalesce: true })).toEqual([])
  })

  test('with several mistakes lists all of them in one message', () => {
    expect(mistakesOf({ ...route, limits: ['x'] }, { ...route, limits: ['y'] }).length).toBe(3)
  })

  test('must state the behavior of a limit during an outage', () => {
    const { onUnavailable: _, ...silent } = limit
    expect(() =>
      definePolicy({
        roles: {},
        limits: { standard: silent as typeof limit },
        routes: [{ method: 'GET', path: '/a', permission: 'a:b' }],
      }),
    ).toThrow(/onUnavailable: must be 'deny' or 'allow'/)
  })
})

describe('a policy with mistakes of several kinds [R31]', () => {
  const rows = [
    { ...route, limits: ['absent'], allow: 'all' },
    { ...route, path: '/b', limits: ['absent'] },
    { method: 'GET', path: '/b', anonymous: true, limits: ['broken'] },
    { ...route, path: '/c/', limits: ['standard'] },
    { ...route, path: '/C', permission: 'orders:write', limits: ['standard'] },
  ]
  const DEFINITION = {
    roles: { reader: ['orders'] },
    limits: { standard: limit, broken: '100/m' },
    routes: rows,
    tokens: { sessionSeconds: 600 },
    keepHeaders: ['X-User-Id'],
    stripHeaders: ['X-User-*'],
  }

  function refusalOf(definition: unknown): Misconfigured {
    try {
      definePolicy(definition as Parameters<typeof definePolicy>[0])
    } catch (error) {
      if (error instanceof Misconfigured) return error
      throw error
    }
    throw new Error('the policy is valid')
  }

  test('lists the mistakes of shapes, of references and of paths at once, each with its route', () => {
    const { mistakes, found } = refusalOf(DEFINITION)
    expect(mistakes).toEqual([
      expect.stringMatching(/^roles\.reader\[0\]: must be a permission/),
      expect.stringMatching(/^limits\.broken: must be an object/),
      'routes[0]: Unrecognized key: "allow"',
      'GET /b: unknown limit absent',
      expect.stringMatching(/^GET \/b: is unreachable/),
      expect.stringMatching(/^tokens\.sessionSeconds: needs/),
      expect.stringMatching(/^keepHeaders: X-User-Id is in stripHeaders/),
      expect.stringMatching(/^GET \/c\/: an origin could confuse it/),
    ])
    expect(found.map(({ message: _, ...mistake }) => mistake)).toEqual([
      { code: 'invalid_format', path: ['roles', 'reader', 0] },
      { code: 'invalid_value', path: ['limits', 'broken'] },
      { code: 'unrecognized_keys', path: ['routes', 0], given: 'allow' },
      {
        code: 'unknown_limit',
        path: ['routes', 1, 'limits'],
        given: 'absent',
        known: expect.arrayContaining(['broken']),
        route: { method: 'GET', path: '/b' },
      },
      {
        code: 'unreachable_route',
        path: ['routes', 2, 'path'],
        route: { method: 'GET', path: '/b' },
      },
      { code: 'unused_setting', path: ['tokens', 'sessionSeconds'] },
      { code: 'conflict', path: ['keepHeaders'] },
      {
        code: 'confusable_route',
        path: ['routes', 3, 'path'],
        route: { method: 'GET', path: '/c/' },
      },
    ])
  })

  test.each([
    null,
    undefined,
    5,
    'policy',
    [],
    {},
    { routes: {}, limits: {}, roles: {} },
    { routes: [], limits: null, roles: {} },
    { routes: [null, 5], limits: { a: null }, roles: null },
    { ...DEFINITION, tokens: null, features: null, revocation: null, relations: null },
    { ...DEFINITION, features: [null], keepHeaders: 5, tenantIssuers: 5 },
  ])('is refused by its mistakes, whatever it is: %j', (definition) => {
    expect(refusalOf(definition).mistakes.length).toBeGreaterThan(0)
  })
})

describe('header rules of a policy [R31, S73]', () => {
  const define = (rules: object) => () =>
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/a', anonymous: true }],
      ...rules,
    })

  test.each([
    [
      { stripHeaders: ['X Tenant'] },
      'stripHeaders[0]: must contain only letters, digits and hyphens',
    ],
    [
      { stripHeaders: ['X-Ok', 'X_Tenant'] },
      'stripHeaders[1]: must contain only letters, digits and hyphens',
    ],
    [{ stripHeaders: ['*'] }, 'stripHeaders[0]: must contain only letters'],
    [{ stripHeaders: ['X-*-Id'] }, 'stripHeaders[0]: must contain only letters'],
    [{ stripHeaders: [''] }, 'stripHeaders[0]: must contain only letters'],
    [{ stripHeaders: 'X-Tenant' }, 'stripHeaders: Invalid input: expected array'],
    [
      { keepHeaders: ['X-User-*'] },
      'keepHeaders[0]: must contain only letters, digits and hyphens',
    ],
    [{ keepHeaders: ['X_User_Id'] }, 'keepHeaders[0]: must contain only letters'],
    [{ keepHeaders: ['X-Auth-Subject'] }, 'keepHeaders[0]: X-Auth-Subject cannot be kept'],
    [{ keepHeaders: ['authorization'] }, 'keepHeaders[0]: authorization cannot be kept'],
    [{ keepHeaders: ['Cookie'] }, 'keepHeaders[0]: Cookie cannot be kept'],
    [{ keepHeaders: ['Connection'] }, 'keepHeaders[0]: Connection cannot be kept'],
    [{ keepHeaders: ['Host'] }, 'keepHeaders[0]: Host cannot be kept'],
    [{ keepHeaders: ['X-Forwarded-For'] }, 'keepHeaders[0]: X-Forwarded-For cannot be kept'],
    [{ keepHeaders: ['X-Forwarded-Proto'] }, 'keepHeaders[0]: X-Forwarded-Proto cannot be kept'],
    [{ keepHeaders: ['Proxy-Host'] }, 'keepHeaders[0]: Proxy-Host cannot be kept'],
    [{ keepHeaders: ['CF-Connecting-IP'] }, 'keepHeaders[0]: CF-Connecting-IP cannot be kept'],
    [{ keepHeaders: ['Grpc-Metadata-X-Auth-Roles'] }, 'cannot be kept'],
    [{ keepHeaders: ['X-Custom'] }, 'keepHeaders[0]: X-Custom is not stripped'],
    [
      { stripHeaders: ['x-user-*'], keepHeaders: ['X-User-Id'] },
      'keepHeaders: X-User-Id is in stripHeaders as well',
    ],
  ])('%o is refused', (rules, mistake) => {
    expect(define(rules)).toThrow(Misconfigured)
    expect(define(rules)).toThrow(mistake)
  })

  test('that are valid are part of the policy', () => {
    const rules = { stripHeaders: ['X-Tenant-*', 'X-Session'], keepHeaders: ['X-User-Id'] }
    expect(define(rules)()).toMatchObject(rules)
  })
})
