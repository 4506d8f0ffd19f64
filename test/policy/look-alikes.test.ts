/** Which routes of a policy an origin could confuse, and what becomes of their requests. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { lookAlikesOf } from '../../src/policy/look-alikes.ts'
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

/** Routes that an origin could take requests of the last row for. */
function lookAlikes(...rows: readonly Row[]): readonly string[] {
  const { routes } = define(rows)
  const last = routes.at(-1)
  return last === undefined ? [] : lookAlikesOf(last, routes).map(({ path }) => path)
}

describe('S67: two routes that differ in spelling alone', () => {
  test.each([
    ['/users/export', '/Users/Export'],
    ['/users/export', '/users/export/'],
    ['/users/:id', '/users/:id/'],
    ['/users/:id/export', '/users/:user/EXPORT'],
    ['/files/*', '/Files/*'],
    ['/users/:id{[a-z]+}', '/users/ROOT'],
    ['/admin', '/admin.'],
    ['/a+b', '/a+b/'],
  ])('%s and %s are refused where they demand different things', (one, other) => {
    const demands = 'which demands something else; let both demand the same'
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
  ])('%s and %s are two routes that the policy names', (one, other) => {
    expect(mistakesOf(row(one, 'administer'), row(other, 'read'))).toEqual([])
    expect(mistakesOf(row(one, 'read'), row(other, 'administer'))).toEqual([])
  })

  test('of two methods are not confused', () => {
    const post = row('/USERS', 'administer', { method: 'POST' })
    expect(mistakesOf(post, row('/users', 'read'))).toEqual([])
  })

  test('an unknown spelling is a mistake', () => {
    const wrong = row('/a', 'read', { originSpelling: 'lax' as 'loose' })
    expect(mistakesOf(wrong)[0]).toMatch(/^routes\[0\]\.originSpelling: /)
  })
})

describe('S67: a route has look-alikes', () => {
  test.each<[string, readonly Row[], readonly string[]]>([
    ['above a wildcard', [row('/api/admin', 'x'), row('/api/*', 'y')], ['/api/admin']],
    ['above a parameter', [row('/u/export', 'x'), row('/u/:id', 'y')], ['/u/export']],
    ['below it, too', [row('/a/B', 'x'), row('/a/:id{[a-z]+}', 'y')], ['/a/B']],
    ['with a parameter', [row('/:t/admin', 'x'), row('/:t/*', 'y')], ['/:t/admin']],
    ['without literals', [row('/u/:id', 'x'), row('/u/*', 'y')], ['/u/:id']],
    ['optional', [row('/a/b/:c?', 'x'), row('/a/*', 'y')], ['/a/b/:c?']],
    ['and none that is elsewhere', [row('/b/admin', 'x'), row('/api/*', 'y')], []],
    ['and none that is longer', [row('/api/:id/x', 'x'), row('/api/:id', 'y')], []],
    ['and none that demands as much', [row('/api/admin', 'y'), row('/api/*', 'y')], []],
    [
      'and none that anybody may call',
      [{ path: '/api/ping', anonymous: true }, row('/api/*', 'y')],
      [],
    ],
    [
      'unless it counts in a limit',
      [row('/api/dear', 'y', { limits: ['few'] }), row('/api/*', 'y')],
      ['/api/dear'],
    ],
    [
      'unless it demands a bound token',
      [row('/api/bound', 'y', { dpop: true }), row('/api/*', 'y')],
      ['/api/bound'],
    ],
    [
      'unless it takes smaller bodies',
      [row('/api/small', 'y', { maxBodyBytes: 1 }), row('/api/*', 'y')],
      ['/api/small'],
    ],
    [
      'and none whose origin is exact',
      [row('/api/admin', 'x', { originSpelling: 'exact' }), row('/api/*', 'y')],
      [],
    ],
  ])('%s', (_, rows, expected) => {
    expect(lookAlikes(...rows)).toEqual(expected)
  })

  test('below it that the router would not pick either way does not count', () => {
    const { routes } = define([row('/users/me', 'y'), row('/users/:id', 'x')])
    const [me] = routes
    expect(me && lookAlikesOf(me, routes)).toEqual([])
  })
})

describe('S67: a policy with strict routes', () => {
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

  async function ask(path: string, role: string, method = 'GET') {
    const before = gateway.asked.length
    const status = await gateway.send({
      method,
      path,
      token: await gateway.token({ roles: [role] }),
    })
    return { status, asked: gateway.asked.slice(before) }
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
  ])('%s reaches no origin, whoever asks, and is ambiguous', async (path) => {
    for (const role of ['reader', 'admin'])
      for (const method of ['GET', 'HEAD'])
        expect(await ask(path, role, method)).toEqual({ status: 400, asked: [] })
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
    expect(await ask(path, role)).toEqual({ status: 200, asked: [`GET ${path}`] })
  })
})
