/** What continuous integration tries a second time, and what it does not. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { NEVER } from '../harness/never.ts'
import { ROOT } from '../harness/process.ts'

const directory = mkdtempSync(join(tmpdir(), 'portcullis-again-'))
afterAll(() => rmSync(directory, { recursive: true }))

const failed = (file: string, ...messages: string[]) => ({
  name: join(ROOT, file),
  status: 'failed',
  message: messages.length === 0 ? 'Error: Hook timed out in 180000ms.' : '',
  assertionResults: messages.map((message) => ({
    status: 'failed',
    fullName: 'a test that failed',
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
  const { status, stdout, stderr } = spawnSync('node', ['.ci/again.mjs', report], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return { status, files: stdout.trim(), said: stderr }
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
  test('has up to three files tried again, and says what failed in them', () => {
    const { status, files, said } = again(
      ...[passed, failed('test/b.test.ts', late), failed('test/c.test.ts'), passed],
    )
    expect({ status, files }).toEqual({ status: 0, files: 'test/b.test.ts\ntest/c.test.ts' })
    expect(said).toBe(`a test that failed: ${late}\nError: Hook timed out in 180000ms.\n`)
  })

  test('with more of them is broken, not starved', () => {
    const files = ['b', 'c', 'd', 'e'].map((name) => failed(`test/${name}.test.ts`, late))
    expect(again(...files)).toMatchObject({ status: 1, files: '' })
    expect(again(...files.slice(1)).status).toBe(0)
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
  ])('has no second chance where %s', (_, failing) => {
    const report = [failed('test/b.test.ts', late, messageOf(failing)), passed]
    expect(again(...report)).toMatchObject({ status: 1, files: '' })
  })

  test('has none where no test says why', () => {
    expect(again(passed)).toMatchObject({ status: 1, files: '' })
    expect(run(join(directory, 'none.json'))).toMatchObject({ status: 1, files: '' })
  })
})
