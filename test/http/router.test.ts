/** The router of the gateway finds what Hono's routers find, for every pattern of a policy. */
import fc from 'fast-check'
import type { Result, Router } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import { describe, expect, test } from 'vitest'
import { isPathPattern } from '../../src/http/path-pattern.ts'
import { createRouter } from '../../src/http/router.ts'

const NAMES = ['a', 'A', 'b', 'ab', 'a-b', 'b.c', 'a+b', '(a)', '-', '1', '17']
const EXPRESSIONS = [':x{[a-z]+}', ':y{[0-9]{2}}', ':z{\\d+}', ':w{[ab]}']
const path = (...segments: readonly fc.Arbitrary<string>[]) =>
  fc
    .tuple(
      fc.array(fc.oneof(...segments), { maxLength: 4 }),
      fc.constantFrom('', '', '/', '/*', '/:o?'),
    )
    .map(([names, end]) => `/${names.join('/')}${end}`.replace(/^\/\//, '/'))
const pattern = (...segments: readonly fc.Arbitrary<string>[]) =>
  fc
    .record({
      method: fc.constantFrom('GET', 'GET', 'POST', 'OPTIONS', 'ALL'),
      path: fc.oneof({ weight: 8, arbitrary: path(...segments) }, fc.constantFrom('*', '/*')),
    })
    .filter((row) => row.path === '*' || isPathPattern(row.path))
const literal = fc.constantFrom(...NAMES.slice(0, 8))
const parameter = fc.constantFrom(':p', ':q', ':r', ':s')
const requested = fc
  .tuple(
    fc.array(fc.constantFrom(...NAMES, '', 'a%2Fb', 'é', ':p', '*'), { maxLength: 5 }),
    fc.constantFrom('', '', '/'),
  )
  .map(([names, end]) => `/${names.join('/')}${end}`)

/**
 * Returns the positions of the matching rows, each with its parameters. For a path that contains `:p` or
 * `*`, Hono's routers return some rows twice.
 */
function answers(router: Router<number>, method: string, of: string) {
  const [found, stash]: [Result<number>[0], (readonly string[])?] = router.match(method, of)
  const textOf = (value: string | number) => (typeof value === 'number' ? stash?.[value] : value)
  const rows = found.map(
    ([at, params]) =>
      [
        at,
        Object.fromEntries(Object.entries(params).map(([name, v]) => [name, textOf(v)])),
      ] as const,
  )
  return [...new Map(rows)]
}

function compare(
  rows: fc.Arbitrary<{ method: string; path: string }>,
  other: () => Router<number>,
) {
  let matched = 0
  const cases = fc.tuple(
    fc.array(rows, { minLength: 1, maxLength: 12 }),
    fc.array(requested, { minLength: 8, maxLength: 8 }),
  )
  fc.assert(
    fc.property(cases, ([table, paths]) => {
      const [own, expected] = [createRouter<number>(), other()]
      for (const [at, { method, path }] of table.entries()) {
        own.add(method, path, at)
        expected.add(method, path, at)
      }
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE'])
        for (const of of paths) {
          const found = answers(own, method, of)
          matched += found.length
          expect([of, found]).toEqual([of, answers(expected, method, of)])
        }
    }),
    { numRuns: 500 },
  )
  expect(matched).toBeGreaterThan(2_000)
}

const smart = () => new SmartRouter<number>({ routers: [new RegExpRouter(), new TrieRouter()] })

describe('the router of the gateway', () => {
  test('finds the same routes and parameters as the default router of Hono, for any table', () => {
    compare(pattern(literal, parameter), smart)
  })

  test('finds the same as the tree router of Hono, also for expressions', () => {
    // After an expression, the tree router of Hono reads a literal as a part of the expression.
    const plain = fc.constantFrom('a', 'A', 'b', 'ab', 'a-b')
    const expression = fc.constantFrom(...EXPRESSIONS)
    compare(pattern(plain, parameter, expression), () => new TrieRouter())
  })

  // The tree router of Hono reads `a|b` as "begins with a, or ends with b".
  test.each([':x{a|b}', ':x{b|a}'])('matches the whole segment with %s', (segment) => {
    const router = createRouter<number>()
    router.add('GET', `/${segment}/c`, 1)
    router.add('GET', `/${segment}`, 2)
    expect(answers(router, 'GET', '/a/c')).toEqual([[1, { x: 'a' }]])
    expect(answers(router, 'GET', '/b')).toEqual([[2, { x: 'b' }]])
    for (const path of ['/ax/c', '/xb/c', '/ax', '/xb', '/a/b'])
      expect([path, answers(router, 'GET', path)]).toEqual([path, []])
  })

  test('an expression can match slashes, and the segments before it match as others', () => {
    const router = createRouter<number>()
    for (const [at, path] of ['/:x{.+[.]b}', '/a/:p/:x{.+[.]b}', '/a/c/:x{.+[.]b}'].entries())
      router.add('GET', path, at)
    expect(answers(router, 'GET', '/a/c/d/e.b')).toEqual([
      [0, { x: 'a/c/d/e.b' }],
      [1, { p: 'c', x: 'd/e.b' }],
      [2, { x: 'd/e.b' }],
    ])
    expect(answers(router, 'GET', '/a//d.b')).toEqual([[0, { x: 'a//d.b' }]])
  })

  test('finds names that JavaScript objects have by themselves only if a route has them', () => {
    const router = createRouter<number>()
    router.add('GET', '/__proto__/:__proto__', 1)
    expect(answers(router, 'GET', '/constructor/x')).toEqual([])
    const [[[, params] = []]] = router.match('GET', '/__proto__/x')
    expect(Object.entries(params ?? {})).toEqual([['__proto__', 'x']])
  })
})
