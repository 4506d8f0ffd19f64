/** The places of a policy in its source. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ignoresIn } from '../../../cli/policy/check.ts'
import { readSource } from '../../../cli/policy/source.ts'
import { ROOT } from '../../harness/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-source-'))
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const OTHER = `export const shared = [
  { method: 'GET', path: '/shared' },
] as const
export default { fast: '1/s' }
`
const POLICY = `import { definePolicy } from 'portcullis'
import fast, { shared as rows } from './other.ts'
const base: Limits = { 'two words': '2/s' }
const trusted = defineIssuers([{ preset: 'auth0' }, { audience: 'a' }])
const orders = [{ method: 'GET', path: '/orders', limits: ['fast'] }] satisfies Row[]
export default definePolicy({
  roles: { reader: ['a:b'] },
  limits: { ...base, ...fast, slow: '1/h' },
  issuers: trusted,
  routes: [
    // A comment is no row.
    ...orders,
    ...rows,
    ...crud('items'),
    { method: 'POST', path: '/last' },
    { ...common, method: 'PUT', path: '/last' },
  ],
} as const)
`
write('other.ts', OTHER)
const file = write('policy.ts', POLICY)

/** Returns the file, and the text that begins at the place. */
function textAt(
  path: readonly (string | number)[],
  count?: number,
  route?: { method: string; path: string },
) {
  const place = readSource(file, count).placeOf({ path, route })
  const text = basename(place.file) === 'other.ts' ? OTHER : POLICY
  const line = text.split('\n')[place.line - 1] ?? ''
  return [basename(place.file), line.slice(place.column - 1).slice(0, 20), place.isExact]
}

describe('a place is found', () => {
  test.each<[path: readonly (string | number)[], name: string, text: string]>([
    [['roles', 'reader', 0], 'policy.ts', "'a:b'] },"],
    [['issuers', 1, 'audience'], 'policy.ts', "audience: 'a' }])"],
    [['limits', 'slow'], 'policy.ts', "slow: '1/h' },"],
    [['limits', 'two words'], 'policy.ts', "'two words': '2/s' }"],
    [['limits', 'fast'], 'other.ts', "fast: '1/s' }"],
    [['routes', 0], 'policy.ts', "{ method: 'GET', pat"],
    [['routes', 0, 'limits', 0], 'policy.ts', "'fast'] }] satisfies"],
    [['routes', 1, 'path'], 'other.ts', "path: '/shared' },"],
  ])('%j', (path, name, text) => {
    expect(textAt(path)).toEqual([name, text, true])
  })

  test('below rows that code creates, if the number of rows is known', () => {
    expect(textAt(['routes', 5, 'path'], 7)).toEqual(['policy.ts', "path: '/last' },", true])
    expect(textAt(['routes', 6, 'method'], 7)).toEqual(['policy.ts', "method: 'PUT', path:", true])
  })

  test('by method and path, if the number of rows is not known', () => {
    const route = { method: 'POST', path: '/last' }
    expect(textAt(['routes', 5, 'path'], undefined, route)).toEqual([
      'policy.ts',
      "path: '/last' },",
      true,
    ])
  })
})

describe('a row of override()', () => {
  const generated = `export const routes = [
  { method: 'GET', path: '/a', permission: 'a:read' },
  { method: 'GET', path: '/b', permission: 'b:read' },
  { method: 'GET', path: '/c', permission: 'c:read' },
] as const satisfies readonly RouteDefinition[]
`
  const changed = `import { routes } from './routes.generated.ts'
export default definePolicy({
  routes: [
    { method: 'GET', path: '/own' },
    ...group({ prefix: '/v1' }, override(routes, {
      'GET /a': null,
      'GET /b': { limits: ['x'] },
    })),
  ],
})
`
  write('routes.generated.ts', generated)
  const policy = write('overridden.ts', changed)

  test.each<[path: readonly (string | number)[], name: string, text: string]>([
    [['routes', 1], 'overridden.ts', "'GET /b': { limits: ['x'] },"],
    [['routes', 1, 'limits', 0], 'overridden.ts', "'x'] },"],
    [['routes', 1, 'permission'], 'routes.generated.ts', "permission: 'b:read' },"],
    [['routes', 2], 'routes.generated.ts', "{ method: 'GET', path: '/c', permission: 'c:read' },"],
    [['routes', 2, 'permission'], 'routes.generated.ts', "permission: 'c:read' },"],
  ])('%j is its change, or the generated row', (path, name, text) => {
    const place = readSource(policy, 3).placeOf({ path })
    const lines = (name === 'overridden.ts' ? changed : generated).split('\n')
    expect([basename(place.file), place.isExact]).toEqual([name, true])
    expect(lines[place.line - 1]?.slice(place.column - 1)).toBe(text)
  })
})

describe('the nearest place is returned, and called so,', () => {
  test('for a row that code creates', () => {
    const expected = ['policy.ts', "...crud('items'),", false]
    expect(textAt(['routes', 3], 7)).toEqual(expected)
    expect(textAt(['routes', 3, 'path'], undefined, { method: 'GET', path: '/x' })).toEqual(
      expected,
    )
  })

  test('for a field that is absent', () => {
    expect(textAt(['routes', 0, 'input'])).toEqual(['policy.ts', "{ method: 'GET', pat", false])
    expect(textAt(['tokens', 'sessionSeconds'])).toEqual(['policy.ts', '{', false])
  })

  test('for a file without a policy', () => {
    const place = readSource(write('empty.ts', 'export default 1\n')).placeOf({ path: ['roles'] })
    expect(place).toMatchObject({ line: 1, column: 1, isExact: false })
  })
})

test('the rows of a group are found, also in another group', () => {
  const grouped = write(
    'grouped.ts',
    `export default definePolicy({ routes: [
  ...group({ prefix: '/v1' }, [
    { method: 'GET', path: '/a' },
    ...group({ prefix: '/b' }, inner),
  ]),
  { method: 'GET', path: '/last' },
] })
const inner = [{ method: 'GET', path: '/c' }]
`,
  )
  const linesOf = [0, 1, 2].map((index) => {
    const { line, isExact } = readSource(grouped).placeOf({ path: ['routes', index] })
    return [line, isExact]
  })
  expect(linesOf).toEqual([
    [3, true],
    [8, true],
    [6, true],
  ])
})

test('constants that refer to each other do not confuse the search', () => {
  const cyclic = write('cyclic.ts', 'const a = b\nconst b = a\nexport default definePolicy(a)\n')
  expect(readSource(cyclic).placeOf({ path: ['roles'] })).toMatchObject({ isExact: false })
})

test('a place in the policy of this repository is right', () => {
  const { line } = readSource(join(ROOT, 'portcullis.config.ts')).placeOf({
    path: ['routes', 4, 'permission'],
  })
  expect(ignoresIn(join(ROOT, 'portcullis.config.ts')).size).toBe(0)
  expect(line).toBeGreaterThan(40)
})

test('comments silence rules of the next line with code, or of their own line', () => {
  const silent = write(
    'silent.ts',
    `// portcullis-ignore unlimited-route: the origin limits it
// Another comment.

first
second // portcullis-ignore unused-limit, unused-role
/* portcullis-ignore observe-mode */
third
// portcullis ignore unlimited-route
fourth
`,
  )
  expect([...ignoresIn(silent)]).toEqual([
    [4, ['unlimited-route']],
    [5, ['unused-limit', 'unused-role']],
    [7, ['observe-mode']],
  ])
})
