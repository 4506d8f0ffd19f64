/** The lock of the logins of the command line. */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alone } from '../../../cli/login/store.ts'

const TIMES = { pollMs: 1, beatMs: 5, quietMs: 60, waitMs: 60_000 }

let folder: string
const lock = () => join(folder, 'portcullis', 'lock')
const run = <Value>(work: () => Promise<Value>, times = TIMES) =>
  alone(work, { XDG_CONFIG_HOME: folder }, times)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-store-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a command that takes longer than a lock may be quiet keeps it', async () => {
  const done: string[] = []
  const first = run(async () => {
    await wait(10 * TIMES.quietMs)
    done.push('first')
  })
  const second = run(async () => void done.push('second'))
  await Promise.all([first, second])
  expect(done).toEqual(['first', 'second'])
  expect(existsSync(lock())).toBe(false)
})

test('the lock of a command that was killed is removed', async () => {
  mkdirSync(lock(), { recursive: true })
  expect(await run(async () => 'done')).toBe('done')
  expect(existsSync(lock())).toBe(false)
})

test('a command that has lost its lock does not remove that of another one', async () => {
  const ended = Promise.withResolvers<void>()
  const suspended = run(() => ended.promise, { ...TIMES, beatMs: 60_000 })
  const other = run(async () => {
    ended.resolve()
    await suspended
    expect(existsSync(lock())).toBe(true)
  })
  await other
  expect(existsSync(lock())).toBe(false)
})

test('a lock that stays busy is a failure, and stays', async () => {
  const ended = Promise.withResolvers<void>()
  const holder = run(() => ended.promise)
  await expect(run(async () => 'both', { ...TIMES, waitMs: 100 })).rejects.toThrow('for too long')
  expect(existsSync(lock())).toBe(true)
  ended.resolve()
  await holder
})
