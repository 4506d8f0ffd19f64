/**
 * Which test files a failed run may try once more, by vitest's JSON report: prints them, one a line,
 * and on the error stream what failed in them. Ends with 1 where nothing may be tried again.
 *
 * Tests of real processes and real deadlines share two cores here: one that was starved says nothing
 * about the gateway, which then refuses as it should. Alone they get another chance; but a
 * counterexample to a property, or a thing that must never happen, is no accident.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** More than so many files are not starved: something is broken. */
const MAX_FILES = 3
/** `NEVER` of test/harness/never.ts, and what fast-check says. */
const FINAL = /never, on any machine|Property failed after/

/** @returns {string[]} the file's failures: of its tests, or of loading or arranging it */
function failuresOf({ message, assertionResults }) {
  const failed = assertionResults.filter(({ status }) => status === 'failed')
  return [
    ...failed.map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join(' ')}`),
    ...(failed.length === 0 ? [message] : []),
  ]
}

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed')
const failures = failed.flatMap(failuresOf)
for (const failure of failures) console.error(failure.split('\n')[0])

const tooMany = failed.length > MAX_FILES && `${failed.length} files have failed`
const final = failures.some((failure) => FINAL.test(failure)) && 'something was that never must be'
const why = (failed.length === 0 && 'no file of tests has failed') || tooMany || final
if (why) {
  console.error(`not tried again: ${why}`)
  process.exit(1)
}
for (const { name } of failed) console.log(relative(process.cwd(), name))
