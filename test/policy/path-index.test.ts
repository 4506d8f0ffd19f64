/** The index of a route table finds what a comparison of all pairs of rows finds. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { isPathPattern, shadows } from '../../src/http/path-pattern.ts'
import { createPathIndex } from '../../src/policy/path-index.ts'
import { definePolicy } from '../../src/policy/policy.ts'

const SEGMENTS = ['a', 'A', 'b', 'b.c', ':x', ':y', ':x{[a-z]+}', ':x{a|b}', ':y?', 'a-b', '~']
const segment = fc.constantFrom(...SEGMENTS)
const path = fc
  .tuple(fc.array(segment, { maxLength: 4 }), fc.constantFrom('', '', '/', '/*'))
  .map(([segments, end]) => `/${segments.join('/')}${end}`.replace('//', '/'))
  .filter(isPathPattern)
const row = fc.record({ method: fc.constantFrom('GET' as const, 'POST' as const), path })
const table = fc.array(row, { minLength: 1, maxLength: 12 })
type Row = typeof row extends fc.Arbitrary<infer Value> ? Value : never

const names = (pattern: string) =>
  pattern
    .toLowerCase()
    .split('/')
    .map((name) => (/^[\w-]+$/.test(name) ? name : undefined))

/** Reports whether both rows have a plain segment at some position, and the two differ. */
function differ(one: Row, other: Row): boolean {
  const others = names(other.path)
  const isDistinct = (name: string | undefined, at: number) =>
    name !== undefined && others[at] !== undefined && name !== others[at]
  return one.method !== other.method || names(one.path).some(isDistinct)
}

/** Returns the mistake of the first row above that shadows a row, for each row that has one. */
const unreachable = (rows: readonly Row[]) =>
  rows.flatMap(({ method, path }, at) => {
    const above = rows.slice(0, at).find((one) => one.method === method && shadows(one.path, path))
    return above === undefined
      ? []
      : `${method} ${path}: is unreachable, because ${above.path} above it matches the same requests`
  })

describe('the index of a route table', () => {
  test('returns every row that differs in no plain segment, in the order of the table', () => {
    fc.assert(
      fc.property(table, (rows) => {
        const index = createPathIndex(rows)
        for (const one of rows) {
          const expected = [...rows.entries()].filter(([, other]) => !differ(one, other))
          expect(index.similarTo(one)).toEqual(expected)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('lets a policy name the first row above that makes a row unreachable, for any table', () => {
    let found = 0
    fc.assert(
      fc.property(table, (rows) => {
        const expected = unreachable(rows)
        found += expected.length
        expect(mistakesOf(rows)).toEqual(expected)
      }),
      { numRuns: 200 },
    )
    expect(found).toBeGreaterThan(100)
  })

  test('compares a row only with rows below the same plain segments', () => {
    const rows = Array.from({ length: 1_200 }, (_, at): Row => {
      const [folder, end] = [Math.floor(at / 3), ['', '/:id', '/:id/items'][at % 3]]
      return { method: 'GET', path: `/v1/things${folder}${end}` }
    })
    const index = createPathIndex(rows)
    for (const one of rows) expect(index.similarTo(one)).toHaveLength(3)
  })
})

function mistakesOf(rows: readonly Row[]): readonly string[] {
  try {
    definePolicy({
      roles: {},
      limits: {},
      routes: rows.map((one) => ({ ...one, anonymous: true })),
    })
    return []
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
}
