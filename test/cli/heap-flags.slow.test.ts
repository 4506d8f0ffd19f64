import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

const urlOf = (file: string) => JSON.stringify(pathToFileURL(join(ROOT, file)).href)
const BOUND = `(await import(${urlOf('cli/heap-flags.ts')})).boundHeap()`

/** Runs a program of this folder in a process of its own, after `before`. Returns what it prints. */
function run(program: string, before: string, ...flags: readonly string[]): string {
  const code = `${before}\nawait import(${urlOf(`test/cli/${program}`)})`
  const args = ['--max-semi-space-size=1', ...flags, '--input-type=module', '--eval', code]
  return execFileSync(process.execPath, args, { encoding: 'utf8' })
}

test('V8 never chooses the old generation for new objects, which it does otherwise', () => {
  // V8 decides when its young generation has the largest size.
  const choices = (before: string) =>
    run('long-lived.mjs', before, '--trace-pretenuring-statistics').split('=> tenure').length - 1
  expect(choices('')).toBeGreaterThan(0)
  expect(choices(BOUND)).toBe(0)
})

test('a heap whose long-lived entries are replaced stays below 1.7 times its live data', () => {
  expect(Number(run('churning-cache.mjs', BOUND, '--expose-gc'))).toBeLessThan(1.7)
})

test('the thread of the audit trail has a small young generation, whatever that of the main thread is', () => {
  expect(Number(run('thread-memory.mjs', BOUND, '--max-semi-space-size=16'))).toBeLessThan(8)
})
