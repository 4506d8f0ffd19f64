/** The second attempt of failed tests in continuous integration: which tests get one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { NEVER } from '../harness/never.ts'
import { ROOT } from '../harness/process.ts'

interface Listed {
  readonly file: string
  readonly test: string
  readonly reason: string
}

const LIST = '.ci/speed-dependent.json'
const MIN_REASON_CHARS = 40
const listed = JSON.parse(readFileSync(join(ROOT, LIST), 'utf8')) as readonly Listed[]

const directory = mkdtempSync(join(tmpdir(), 'portcullis-again-'))
afterAll(() => rmSync(directory, { recursive: true }))

const SLOW: Listed = { file: 'test/b.test.ts', test: 'a slow (one)', reason: 'it measures time' }

/** A failed file of the report: each test with its message; no tests if the file did not load. */
const failed = (file: string, tests: Readonly<Record<string, string>>) => ({
  name: join(ROOT, file),
  status: 'failed',
  message: 'Error: Hook timed out in 180000ms.',
  assertionResults: Object.entries(tests).map(([fullName, message]) => ({
    status: 'failed',
    fullName,
    failureMessages: [`${message}\n    at somewhere`],
  })),
})
const passed = { name: join(ROOT, 'test/a.test.ts'), status: 'passed', assertionResults: [] }
const late = 'AssertionError: expected 503 to be 200'

function again(...testResults: readonly object[]) {
  const report = join(directory, 'report.json')
  writeFileSync(report, JSON.stringify({ testResults }))
  return run(report)
}
function run(report: string) {
  const list = join(directory, 'list.json')
  writeFileSync(list, JSON.stringify([SLOW]))
  const { status, stdout, stderr } = spawnSync('node', ['.ci/again.mjs', report, list], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return { status, tests: stdout, failures: stderr }
}
function vitest(...args: readonly string[]) {
  const command = [join(ROOT, 'node_modules/vitest/vitest.mjs'), ...args]
  // A separate run: not a worker of this one, and not a writer of its report.
  const env = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST|NODE_ENV)/.test(name))
  return spawnSync('node', command, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...Object.fromEntries(env), NO_COLOR: '1', FORCE_COLOR: '0' },
  })
}
/** Returns the entries of a list that match no test in any file. */
function withoutTest(list: readonly Listed[]): readonly Listed[] {
  const files = [...new Set(list.map(({ file }) => file))]
  if (files.length === 0) return []
  const { stdout } = vitest('list', ...files, '--json')
  const tests = JSON.parse(stdout) as readonly { file: string; name: string }[]
  const known = new Set(tests.map(({ file, name }) => `${file} ${name.replaceAll(' > ', ' ')}`))
  return list.filter((one) => !known.has(`${join(ROOT, one.file)} ${one.test}`))
}
function messageOf(failing: () => void): string {
  try {
    failing()
  } catch (error) {
    return String(error)
  }
  throw new Error('no test has failed')
}

describe('the second attempt of a failed run', () => {
  test('repeats a listed test, and nothing else of its file', () => {
    const { status, tests, failures } = again(passed, failed(SLOW.file, { [SLOW.test]: late }))
    expect({ status, tests }).toEqual({
      status: 0,
      tests: `${SLOW.file}\t^a slow \\(one\\)$\n`,
    })
    expect(failures).toBe(`${SLOW.file}: ${SLOW.test}: ${late} (gets a second attempt)\n`)
  })

  test.each([
    ['a test that is not listed', failed(SLOW.file, { 'another test': late })],
    ['a test of the same name in another file', failed('test/c.test.ts', { [SLOW.test]: late })],
    [
      'a listed test and an unlisted one',
      failed(SLOW.file, { [SLOW.test]: late, 'another test': late }),
    ],
    ['a file that did not load', failed(SLOW.file, {})],
  ])('repeats nothing after %s', (_, file) => {
    expect(again(passed, file)).toMatchObject({ status: 1, tests: '' })
  })

  test.each([
    ['a forbidden event happened', () => expect(101, NEVER).toBeLessThanOrEqual(100)],
    [
      'a property has a counterexample',
      () =>
        fc.assert(
          fc.property(fc.nat(), (count) => count < 0),
          { seed: 1 },
        ),
    ],
  ])('repeats nothing, not even a listed test, if %s', (_, failing) => {
    const report = [failed(SLOW.file, { [SLOW.test]: messageOf(failing) }), passed]
    expect(again(...report)).toMatchObject({ status: 1, tests: '' })
  })

  test('repeats nothing without a report, or if no test has failed', () => {
    expect(again(passed)).toMatchObject({ status: 1, tests: '' })
    expect(run(join(directory, 'none.json'))).toMatchObject({ status: 1, tests: '' })
  })
})

describe(LIST, () => {
  const real = {
    file: 'test/repo/ci-again.test.ts',
    test: 'the second attempt of a failed run repeats a listed test, and nothing else of its file',
    reason: '',
  }

  test('lists only tests that exist, each with a reason', () => {
    expect(withoutTest(listed)).toEqual([])
    expect(listed.filter(({ reason }) => reason.length < MIN_REASON_CHARS)).toEqual([])
  })

  test('detects a listed test that does not exist', () => {
    const gone = { ...real, test: 'no such test' }
    expect(withoutTest([real, gone, { ...real, file: 'test/repo/rows.test.ts' }])).toEqual([
      gone,
      { ...real, file: 'test/repo/rows.test.ts' },
    ])
  })

  test('selects exactly the listed test by its pattern', () => {
    const pattern = `^${real.test}$`
    const { stdout } = vitest('run', real.file, '-t', pattern)
    expect(stdout).toMatch(/^ +Tests +1 passed/m)
  })
})
