/** docs/checklist.md and the tests are in step. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

interface Row {
  readonly id: string
  readonly files: readonly string[]
  readonly state: string
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** Returns the cells of the table's rows, without the heading. */
const table: readonly Row[] = read('docs/checklist.md')
  .split('\n')
  .filter((line) => /^\| [A-Z]\d/.test(line))
  .map((line) => {
    const [, id = '', , tests = '', state = ''] = line.split('|').map((cell) => cell.trim())
    return { id, files: [...tests.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file), state }
  })
const proven = table.filter(({ state }) => !state.startsWith('not yet'))
const absent = table.filter(({ state }) => state.startsWith('not yet'))

/** Returns ids such as `R01` to `R34`. */
const range = (letter: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => `${letter}${String(from + n).padStart(2, '0')}`)

/** The rows at the end of the name of a test, of a group or of a case: `... is refused [S01, S02]`. */
const TAG = /\[((?:[RS]\d\d, )*[RS]\d\d)\][:,]?['"`]/g

/** Returns the rows that names of tests in a file end with. */
const rowsIn = (file: string): ReadonlySet<string> =>
  new Set([...read(file).matchAll(TAG)].flatMap(([, ids = '']) => ids.split(', ')))

const names = (file: string, id: string): boolean => rowsIn(file).has(id)

const testFiles = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => join('test', path))

describe('docs/checklist.md', () => {
  test('has every row once, in order', () => {
    const ids = table.map(({ id }) => id)
    const first = [...range('R', 1, 34), ...range('S', 1, 78)]
    expect(ids.slice(0, first.length)).toEqual(first)
    // Later rows may have gaps.
    const later = ids.slice(first.length)
    const known = [...range('S', 79, 99), ...range('R', 35, 60)]
    expect(later).toEqual(known.filter((id) => later.includes(id)))
  })

  test('states for each row whether it is proven, and what is missing otherwise', () => {
    const unexpected = table.filter(
      ({ state }) => !/^(?:proven|in part: .+|not yet: .+)$/.test(state),
    )
    expect(unexpected).toEqual([])
  })

  test.each(proven.map(({ id, files }) => [id, files] as const))(
    '%s: its files exist and name it',
    (id, files) => {
      expect(files.length).toBeGreaterThan(0)
      for (const file of files) {
        expect(existsSync(join(ROOT, file)), file).toBe(true)
        expect(names(file, id), `${file} names ${id}`).toBe(true)
      }
    },
  )

  test('says "not yet" only for rows that no test names', () => {
    const named = absent.flatMap(({ id, files }) => [
      ...files,
      ...testFiles.filter((file) => names(file, id)),
    ])
    expect(named).toEqual([])
  })
})

test('every row that a test names is in the table, and rows are nowhere but at the end of names', () => {
  const known = new Set(table.map(({ id }) => id))
  const unknown = testFiles.flatMap((file) => [...rowsIn(file)].filter((id) => !known.has(id)))
  expect(unknown).toEqual([])
  const first = testFiles.filter((file) =>
    /(?:test|it|describe)\(\s*['"`][RS]\d\d\b/.test(read(file)),
  )
  expect(first).toEqual([])
})

test('a row is found in the name of a test, and not in the text around it', () => {
  expect(names('test/redis/rest.test.ts', 'R06')).toBe(true)
  expect(names('test/redis/rest.test.ts', 'R33')).toBe(false)
  expect(names('test/blackbox/global-setup.ts', 'S34')).toBe(false)
})
