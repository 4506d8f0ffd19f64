/** Which tests have a second try in continuous integration, and which do not. */
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

/** A failed file of the report: each test with its message; none where the file did not load. */
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
  // A run of its own: neither a worker of this one, nor the writer of its report.
  const env = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST|NODE_ENV)/.test(name))
  return spawnSync('node', command, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...Object.fromEntries(env), NO_COLOR: '1', FORCE_COLOR: '0' },
  })
}
/** Entries of a list that no test file has a test for. */
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
  throw new Error('nothing has failed')
}

describe('a failed run', () => {
  test('tries a listed test again, and nothing else of its file', () => {
    const { status, tests, failures } = again(passed, failed(SLOW.file, { [SLOW.test]: late }))
    expect({ status, tests }).toEqual({
      status: 0,
      tests: `${SLOW.file}\t^a slow \\(one\\)$\n`,
    })
    expect(failures).toBe(`${SLOW.file}: ${SLOW.test}: ${late} (has a second try)\n`)
  })

  test.each([
    ['a test that is not listed', failed(SLOW.file, { 'another test': late })],
    ['a test of the same name elsewhere', failed('test/c.test.ts', { [SLOW.test]: late })],
    ['a listed test and another', failed(SLOW.file, { [SLOW.test]: late, 'another test': late })],
    ['a file that did not load', failed(SLOW.file, {})],
  ])('tries nothing again after %s', (_, file) => {
    expect(again(passed, file)).toMatchObject({ status: 1, tests: '' })
  })

  test.each([
    ['what must never happen has happened', () => expect(101, NEVER).toBeLessThanOrEqual(100)],
    [
      'a property has a counterexample',
      () =>
        fc.assert(
          fc.property(fc.nat(), (count) => count < 0),
          { seed: 1 },
        ),
    ],
  ])('tries nothing again, not even a listed test, where %s', (_, failing) => {
    const report = [failed(SLOW.file, { [SLOW.test]: messageOf(failing) }), passed]
    expect(again(...report)).toMatchObject({ status: 1, tests: '' })
  })

  test('tries nothing again without a report, or where no test has failed', () => {
    expect(again(passed)).toMatchObject({ status: 1, tests: '' })
    expect(run(join(directory, 'none.json'))).toMatchObject({ status: 1, tests: '' })
  })
})

describe(LIST, () => {
  const real = {
    file: 'test/repo/ci-again.test.ts',
    test: 'a failed run tries a listed test again, and nothing else of its file',
    reason: '',
  }

  test('names tests that exist, each with a reason', () => {
    expect(withoutTest(listed)).toEqual([])
    expect(listed.filter(({ reason }) => reason.length < MIN_REASON_CHARS)).toEqual([])
  })

  test('would not get away with a test that does not exist', () => {
    const gone = { ...real, test: 'no such test' }
    expect(withoutTest([real, gone, { ...real, file: 'test/repo/rows.test.ts' }])).toEqual([
      gone,
      { ...real, file: 'test/repo/rows.test.ts' },
    ])
  })

  test('the pattern of a listed test selects that test alone', () => {
    const pattern = `^${real.test}$`
    const { stdout } = vitest('run', real.file, '-t', pattern)
    expect(stdout).toMatch(/^ +Tests +1 passed/m)
  })
})
