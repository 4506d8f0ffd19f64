/**
 * For any policy and any spelling, the route that the gateway decides by is the route that an
 * origin picks, whatever its rule.
 */
import fc from 'fast-check'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { Denied, Misconfigured } from '../../../src/errors.ts'
import { canonicalPath } from '../../../src/middleware/canonical-path.ts'
import { refuseLookAlikes } from '../../../src/middleware/refuse-look-alikes.ts'
import { findLookAlikes } from '../../../src/policy/look-alikes.ts'
import { definePolicy, type PolicyRoute } from '../../../src/policy/policy.ts'
import { matches, RULES } from './rules.ts'
import { OF_A_LAST_NAME, OF_A_NAME } from './spellings.ts'

const MAX_PATH_LENGTH = 8_192

const NAMES = ['admin', 'api', 'export', 'keys', 'administration', 'Report', 'v1', 'me']
const IDS = ['17', 'alice', '0190a4b0-5c1e', 'x.y', 'b-2', 'index', 'file.pdf', ...NAMES]

const literal = fc.constantFrom(...NAMES)
const segment = fc.oneof(
  { weight: 3, arbitrary: literal },
  { weight: 2, arbitrary: fc.constant(':') },
)
const pattern = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '', '/*', '/'))
  .map(([segments, end]) => segments.map((s, at) => `/${s === ':' ? `:p${at}` : s}`).join('') + end)
const respell = fc.constantFrom(...Object.values({ ...OF_A_NAME, ...OF_A_LAST_NAME }))
const same = (name: string) => name

/** A path derived from a pattern: parameters and `*` filled in, names in other spellings. */
const pathOf = (of: string) =>
  fc
    .tuple(
      fc.array(fc.constantFrom(...IDS), { minLength: 4, maxLength: 4 }),
      fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant(same) }, respell), {
        minLength: 4,
        maxLength: 4,
      }),
    )
    .map(([ids, spell]) =>
      of
        .slice(1)
        .split('/')
        .map((name, at) => {
          const plain = /^[:*]/.test(name) ? (ids[at] ?? '') : name
          return `/${plain === '' ? '' : (spell[at] ?? same)(plain)}`
        })
        .join(''),
    )

/** Routes in the order of the patterns, each with its own permission. */
function policyOf(patterns: readonly string[]): readonly PolicyRoute[] | undefined {
  try {
    return definePolicy({
      roles: {},
      limits: {},
      routes: patterns.map((path, at) => ({ method: 'GET', path, permission: `route:${at}` })),
    }).routes
  } catch (error) {
    // The policy refuses rows that shadow others or look alike.
    if (error instanceof Misconfigured) return undefined
    throw error
  }
}

/**
 * The stages of the gateway that decide about a path; they answer with the pattern that admits it.
 */
function routerOf(routes: readonly PolicyRoute[]) {
  const app = new Hono()
  app.onError((error, c) => {
    if (error instanceof Denied) return c.text('refused', 400)
    throw error
  })
  app.use(canonicalPath())
  for (const route of routes) {
    const lookAlikes = findLookAlikes(route, routes)
    app.on(route.method, [route.path], refuseLookAlikes({ lookAlikes }), (c) => c.text(route.path))
  }
  return async (path: string) => {
    const answer = await app.request(`http://gateway.test${path}`)
    return answer.status === 200 ? answer.text() : undefined
  }
}

describe('any policy [S50, S67]', () => {
  test('admits a path by the same route that an origin picks for it, for every rule', async () => {
    let admitted = 0
    let refused = 0
    const cases = fc.array(pattern, { minLength: 2, maxLength: 5 }).chain((patterns) =>
      fc.record({
        patterns: fc.constant(patterns),
        paths: fc.array(fc.constantFrom(...patterns).chain(pathOf), {
          minLength: 5,
          maxLength: 10,
        }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(cases, async ({ patterns, paths }) => {
        const routes = policyOf(patterns)
        fc.pre(routes !== undefined)
        const route = routerOf(routes ?? [])
        for (const spelled of paths) {
          // The URL standard resolves dot segments; the origin receives what the gateway reads.
          const path = new URL(spelled, 'http://gateway.test').pathname
          const by = await route(path)
          if (by === undefined) refused += 1
          else admitted += 1
          for (const rule of by === undefined ? [] : RULES) {
            const picked = patterns.find((one) => matches(rule, one, path))
            // An origin without such a route answers 404.
            if (picked !== undefined) expect(`${rule.name}: ${picked}`).toBe(`${rule.name}: ${by}`)
          }
        }
      }),
      { numRuns: 600 },
    )
    // Both outcomes must be common.
    expect(admitted).toBeGreaterThan(400)
    expect(refused).toBeGreaterThan(400)
  })

  test('needs time linear in the length of the path, for every content', async () => {
    const routes = policyOf(['/api/admin', '/api/:id/export', '/:a/:b{[a-z]+}/me', '/*']) ?? []
    const route = routerOf(routes)
    for (const part of ['%20', '.', '+', '/a', '%EF%B7%BA', '%CC%81', '~1', ':', 'admin', '/+a']) {
      for (const start of ['/api/admin', '/api/', '/']) {
        const path = (start + part.repeat(MAX_PATH_LENGTH)).slice(0, MAX_PATH_LENGTH - 12)
        await route(`${path.replace(/%[^%]{0,1}$/, '')}x`)
      }
    }
  })
})
