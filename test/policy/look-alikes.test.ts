/** Routes of a policy that an origin could confuse, and the treatment of their requests. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { findLookAlikes } from '../../src/policy/look-alikes.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { startGateway, type TestGateway } from '../rows/gateway.ts'

type Row = Partial<RouteDefinition> & { readonly path: string }

const row = (path: string, permission: string, rest: Partial<Row> = {}): Row => ({
  path,
  permission: `things:${permission}`,
  ...rest,
})

const define = (rows: readonly Row[]) =>
  definePolicy({
    roles: { reader: ['things:read'], admin: ['things:*'] },
    limits: {
      few: { limit: 1_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    },
    routes: rows.map((one) => ({ method: 'GET', ...one }) as RouteDefinition<'few'>),
  })

function mistakesOf(...rows: readonly Row[]): readonly string[] {
  try {
    define(rows)
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return error.mistakes
  }
}

/** Returns the routes that an origin could pick for requests of the last row. */
function lookAlikes(...rows: readonly Row[]): readonly string[] {
  const { routes } = define(rows)
  const last = routes.at(-1)
  return last === undefined ? [] : findLookAlikes(last, routes).map(({ path }) => path)
}

describe('two routes that differ only in spelling [S67]', () => {
  test.each([
    ['/users/export', '/Users/Export'],
    ['/users/export', '/users/export/'],
    ['/users/:id', '/users/:id/'],
    ['/users/:id/export', '/users/:user/EXPORT'],
    ['/files/*', '/Files/*'],
    ['/users/:id{[a-z]+}', '/users/ROOT'],
    ['/admin', '/admin.'],
    ['/a+b', '/a+b/'],
  ])('%s and %s are refused if they have different requirements', (one, other) => {
    const demands = 'which has other requirements; give both the same requirements'
    for (const [upper, lower] of [
      ['administer', 'read'],
      ['read', 'administer'],
    ] as const) {
      const mistakes = mistakesOf(row(one, upper), row(other, lower))
      expect(mistakes).toHaveLength(1)
      expect(mistakes[0]).toContain(demands)
      expect(mistakes[0]).toContain("originSpelling: 'exact'")
    }
    expect(mistakesOf(row(one, 'read'), row(other, 'read'))).toEqual([])
    const exact = { originSpelling: 'exact' } as const
    expect(mistakesOf(row(one, 'read', exact), row(other, 'administer', exact))).toEqual([])
  })

  test.each([
    ['/orders', '/orders.csv'],
    ['/docs', '/docs/index.html'],
    ['/', '/index.html'],
    ['/orders', '/orders/:id'],
    ['/orders/:id', '/orders/:id/invoice'],
    ['/v1/users', '/v1.1/users'],
    ['/.well-known/a', '/.well-known/*'],
    ['/files', '/files/*'],
  ])('%s and %s are distinct routes', (one, other) => {
    expect(mistakesOf(row(one, 'administer'), row(other, 'read'))).toEqual([])
    expect(mistakesOf(row(one, 'read'), row(other, 'administer'))).toEqual([])
  })

  test('are not confused if their methods differ', () => {
    const post = row('/USERS', 'administer', { method: 'POST' })
    expect(mistakesOf(post, row('/users', 'read'))).toEqual([])
  })

  test('with an unknown originSpelling are refused', () => {
    const wrong = row('/a', 'read', { originSpelling: 'lax' as 'loose' })
    expect(mistakesOf(wrong)[0]).toMatch(/^routes\[0\]\.originSpelling: /)
  })
})

describe('look-alikes of a route [S67]', () => {
  test.each<[string, readonly Row[], readonly string[]]>([
    ['above a wildcard', [row('/api/admin', 'x'), row('/api/*', 'y')], ['/api/admin']],
    ['above a parameter', [row('/u/export', 'x'), row('/u/:id', 'y')], ['/u/export']],
    ['below a parameter as well', [row('/a/B', 'x'), row('/a/:id{[a-z]+}', 'y')], ['/a/B']],
    ['with a parameter', [row('/:t/admin', 'x'), row('/:t/*', 'y')], ['/:t/admin']],
    ['without literals', [row('/u/:id', 'x'), row('/u/*', 'y')], ['/u/:id']],
    ['optional', [row('/a/b/:c?', 'x'), row('/a/*', 'y')], ['/a/b/:c?']],
    ['none if the other route is elsewhere', [row('/b/admin', 'x'), row('/api/*', 'y')], []],
    ['none if the other route is longer', [row('/api/:id/x', 'x'), row('/api/:id', 'y')], []],
    [
      'none if both routes have the same requirements',
      [row('/api/admin', 'y'), row('/api/*', 'y')],
      [],
    ],
    [
      'none if the route is anonymous',
      [{ path: '/api/ping', anonymous: true }, row('/api/*', 'y')],
      [],
    ],
    [
      'a route with its own limit',
      [row('/api/dear', 'y', { limits: ['few'] }), row('/api/*', 'y')],
      ['/api/dear'],
    ],
    [
      'a route that requires a DPoP-bound token',
      [row('/api/bound', 'y', { dpop: true }), row('/api/*', 'y')],
      ['/api/bound'],
    ],
    [
      'a route with a smaller body limit',
      [row('/api/small', 'y', { maxBodyBytes: 1 }), row('/api/*', 'y')],
      ['/api/small'],
    ],
    [
      'none if the origin spelling is exact',
      [row('/api/admin', 'x', { originSpelling: 'exact' }), row('/api/*', 'y')],
      [],
    ],
  ])('%s', (_, rows, expected) => {
    expect(lookAlikes(...rows)).toEqual(expected)
  })

  test('exclude a route below it that the router would not pick in either case', () => {
    const { routes } = define([row('/users/me', 'y'), row('/users/:id', 'x')])
    const [me] = routes
    expect(me && findLookAlikes(me, routes)).toEqual([])
  })
})

describe('a policy with strict routes [S67]', () => {
  let gateway: TestGateway

  beforeAll(async () => {
    gateway = await startGateway(
      define([
        row('/api/admin', 'administer'),
        row('/api/*', 'read'),
        row('/files/report', 'administer', { originSpelling: 'distinct-extensions' }),
        row('/files/:name', 'read'),
        row('/exact/Admin', 'administer', { originSpelling: 'exact' }),
        row('/exact/:name', 'read'),
        row('/users/me', 'read'),
        row('/users/:id', 'administer'),
        row('/*', 'read', { limits: ['few'] }),
      ]),
    )
  })
  afterAll(() => gateway?.close())

  async function sendAs(path: string, role: string, method = 'GET') {
    const before = gateway.reached.length
    const status = await gateway.send({
      method,
      path,
      token: await gateway.token({ roles: [role] }),
    })
    return { status, reached: gateway.reached.slice(before) }
  }

  test.each([
    '/api/ADMIN',
    '/api/admin/',
    '/api/admin.',
    '/api/admin%20',
    '/API/admin',
    '/Api/Admin/',
    '/files/REPORT',
    '/files/report%20',
    '/files/report::$DATA',
    '/users/ME',
    '/users/me.json',
    '/USERS/17',
  ])('%s is refused as ambiguous for every caller, and reaches no origin', async (path) => {
    for (const role of ['reader', 'admin'])
      for (const method of ['GET', 'HEAD'])
        expect(await sendAs(path, role, method)).toEqual({ status: 400, reached: [] })
  })

  test.each([
    ['/api/admin', 'admin'],
    ['/api/orders', 'reader'],
    ['/api/orders/ADMIN/x', 'reader'],
    ['/api/administrators', 'reader'],
    ['/api/admin-2', 'reader'],
    ['/api/admin/users', 'reader'],
    ['/api/%E7%AE%A1%E7%90%86', 'reader'],
    ['/api/%D0%B0%D0%B4%D0%BC%D0%B8%D0%BD', 'reader'],
    ['/api', 'reader'],
    ['/files/report-2.pdf', 'reader'],
    ['/files/report.pdf', 'reader'],
    ['/files/report', 'admin'],
    ['/files/2026%20report.pdf', 'reader'],
    ['/exact/ADMIN', 'reader'],
    ['/exact/Admin', 'admin'],
    ['/exact/admin.json', 'reader'],
    ['/users/me', 'reader'],
    ['/users/17', 'admin'],
    ['/users/mel', 'admin'],
    ['/users/user%40example.com', 'admin'],
    ['/index.html', 'reader'],
    ['/caf%C3%A9/menu', 'reader'],
  ])('%s is forwarded for %s, byte for byte', async (path, role) => {
    expect(await sendAs(path, role)).toEqual({ status: 200, reached: [`GET ${path}`] })
  })
})
