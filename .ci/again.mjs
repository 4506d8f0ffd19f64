/**
 * Prints which tests of a failed run get a second attempt: `node .ci/again.mjs REPORT LIST`.
 *
 * REPORT is vitest's JSON report. LIST is a JSON array of `{ "file", "test", "reason" }`: the tests that
 * depend on the speed of the machine, by path and full name. The error stream names every failure.
 *
 * Exits with 0 only if every failure is a test of the list. Then it prints a line for each failure: the
 * file, a tab, and a regular expression for `vitest -t`. Exits with 1 and prints nothing otherwise, and
 * if a listed test reports a forbidden event or a counterexample of fast-check.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** `NEVER` of test/harness/never.ts, and the message of fast-check. */
const FINAL = /never, on any machine|Property failed after/

const [, , report = '', list = ''] = process.argv
const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))
const listed = new Set(readJson(list).map(({ file, test }) => `${file}\t${test}`))

/** Returns the failures of a file: its tests, or the file itself if it could not be loaded. */
function failuresOf({ name, message, assertionResults }) {
  const file = relative(process.cwd(), name)
  const failed = assertionResults.filter(({ status }) => status === 'failed')
  if (failed.length === 0) return [{ file, test: undefined, message }]
  return failed.map(({ fullName, failureMessages }) => ({
    file,
    test: fullName,
    message: failureMessages.join(' '),
  }))
}

function whyFinal({ file, test, message }) {
  if (test === undefined) return 'the file could not be loaded or prepared'
  if (FINAL.test(message)) return 'this must not happen even once'
  if (!listed.has(`${file}\t${test}`)) return 'not listed as dependent on the speed of the machine'
  return undefined
}

const failures = readJson(report)
  .testResults.filter(({ status }) => status === 'failed')
  .flatMap(failuresOf)
let isFinal = failures.length === 0
for (const failure of failures) {
  const why = whyFinal(failure)
  isFinal ||= why !== undefined
  const [first] = failure.message.split('\n')
  console.error(
    `${failure.file}: ${failure.test ?? ''}: ${first} (${why ?? 'gets a second attempt'})`,
  )
}
if (isFinal) process.exit(1)
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
for (const { file, test } of failures) console.log(`${file}\t^${escaped(test)}$`)
