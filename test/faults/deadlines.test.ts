/** No call of ours waits for ever: what the table of decision 0023 says, held against the code. */
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
  // The demo origin is what others call.
  .filter((path) => path !== 'workers/origin.ts')

/** Code without its comments. */
const codeOf = (path: string) =>
  read(path)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/\/\/.*$/gm, '')

/** What follows a call of `fetch`; where a method of that name begins is no call. */
const CALL_OF_FETCH = /^(?!\s*(?:async )?fetch\().*(?<![.\w])fetch\(/gm
/** Bindings, as their types are called. */
const BINDING = /\b(D1Database|R2Bucket|QueueBinding)\b/
const BOUNDED = /\b(withDeadline|within)[(<]/
/** Methods of theirs that ask something. */
const CALLS = /\.(run|first|all|batch|sendBatch|head|put)[(<]/

describe('every call to something else has a deadline', () => {
  test('R02, R09, R24: over HTTP it has a signal', () => {
    const calls = sources.flatMap((path) => {
      const code = codeOf(path)
      return [...code.matchAll(CALL_OF_FETCH)].map(
        ({ index }) => [path, code.slice(index, index + 400)] as const,
      )
    })
    expect(calls.map(([path]) => path)).toContain('src/tokens/key-set-download.ts')
    const without = calls.filter(([, call]) => !/\bsignal\b/.test(call)).map(([path]) => path)
    expect(without).toEqual([])
    // That one takes its options from a few lines above.
    expect(codeOf('src/origin/origin.ts')).toMatch(/const init = \{[^}]*signal: abort\.signal/)
  })

  test('R20: to D1, R2 and the queue it is a race with a timer', () => {
    const users = sources.filter((path) => {
      const code = codeOf(path)
      return /^src\/[a-z-]+\/(?:d1|r2|queue)\//.test(path) && BINDING.test(code) && CALLS.test(code)
    })
    expect(users).toContain('src/audit/d1/audit-events.ts')
    expect(users.filter((path) => !BOUNDED.test(codeOf(path)))).toEqual([])
  })
})
