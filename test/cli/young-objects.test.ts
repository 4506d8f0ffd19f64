import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

/** V8 decides when its young generation has the largest size. */
const FLAGS = ['--max-semi-space-size=1', '--trace-pretenuring-statistics']

/** Returns how often V8 chose the old generation for new objects. */
function choices(before: string): number {
  const program = `${before}\nawait import(${JSON.stringify(pathToFileURL(join(ROOT, 'test/cli/long-lived.mjs')).href)})`
  const args = [...FLAGS, '--input-type=module', '--eval', program]
  return execFileSync(process.execPath, args, { encoding: 'utf8' }).split('=> tenure').length - 1
}

test('V8 never chooses the old generation for new objects, which it does otherwise', () => {
  const url = pathToFileURL(join(ROOT, 'cli/young-objects.ts')).href
  const set = `(await import(${JSON.stringify(url)})).keepObjectsYoung()`
  expect(choices('')).toBeGreaterThan(0)
  expect(choices(set)).toBe(0)
})
