/** Every call to a dependency has a deadline. Compares the table of decision 0023 with the code. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const sources = ['src', 'workers']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.startsWith('.'))
      .map((path) => join(folder, path)),
  )
  // The demo origin only receives calls.
  .filter((path) => path !== 'workers/origin.ts')

/** Returns code without its comments. */
const codeOf = (path: string) =>
  read(path)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/\/\/.*$/gm, '')

/** Matches calls of `fetch`, and not the beginning of a method with that name. */
const CALL_OF_FETCH = /^(?!\s*(?:async )?fetch\().*(?<![.\w])fetch\(/gm
/** Databases and bindings by the names of their types. */
const DEPENDENCY = /\b(TrailDatabase|ConsumerDatabase|ExportBucket|QueueBinding)\b/
const BOUNDED = /\b(withDeadline|within|withinQuery)[(<]/
/** Functions and methods that send a call. */
const CALLS = /\b(rowsOf|firstOf|changesOf)[(<]|\.(run|migrate|sendBatch|head|put)[(<]/

describe('every call to a dependency has a deadline', () => {
  test('an HTTP call has a signal [R02, R09, R24]', () => {
    const calls = sources.flatMap((path) => {
      // This function passes its parameters on. Its caller is checked below.
      const code = codeOf(path)
        .replace('(input, init) => fetch(input, init)', '')
        // So is this call, which has its options in a variable a few lines above.
        .replace('fetch(base + target, init)', '')
        // This is text of an example for the users of an API.
        .replace('await fetch(PORTCULLIS_URL', '')
      return [...code.matchAll(CALL_OF_FETCH)].map(
        ({ index }) => [path, code.slice(index, index + 400)] as const,
      )
    })
    expect(calls.map(([path]) => path)).toContain('src/access/tokens/document.ts')
    const without = calls.filter(([, call]) => !/\bsignal\b/.test(call)).map(([path]) => path)
    expect(without).toEqual([])
    const documents = codeOf('src/features/authorization-code/registration/client-documents.ts')
    expect(documents).toMatch(/await call\([^)]*signal: AbortSignal\.timeout/)
    expect(codeOf('src/origin/origin.ts')).toMatch(/const init = \{[^}]*signal: abort\.signal/)
  })

  test('a call to the audit database, R2 or the queue races with a timer [R20]', () => {
    const users = sources.filter((path) => {
      const code = codeOf(path)
      return (
        /^src\/[a-z-]+\/(?:sql|r2|queue)\//.test(path) && DEPENDENCY.test(code) && CALLS.test(code)
      )
    })
    expect(users).toContain('src/audit/sql/audit-events.ts')
    // The caller of the search, and of the hours, bounds it.
    expect(users.filter((path) => !BOUNDED.test(codeOf(path)))).toEqual([
      'src/audit/sql/block-search.ts',
      // The port: these are the functions that the others call.
      'src/audit/sql/database.ts',
      'src/audit/sql/hour-rows.ts',
    ])
    expect(codeOf('src/audit/sql/audit-events.ts')).toMatch(
      /withinQuery<BlockEventsFound>\(\s*\(\) => searchBlocks\(/,
    )
    expect(codeOf('src/audit/sql/schema.ts')).toMatch(
      /function withinQuery\b[^}]*\bwithDeadline\(work\(\)/,
    )
  })
})
