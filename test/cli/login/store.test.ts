/** The lock of the logins of the command line. */
import { spawnSync } from 'node:child_process'
import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alone } from '../../../cli/login/store.ts'
import { ROOT } from '../../harness/process.ts'

const TIMES = { pollMs: 1, beatMs: 5, quietMs: 60, waitMs: 60_000 }

let folder: string
const lock = () => join(folder, 'portcullis', 'lock')
const run = <Value>(work: () => Promise<Value>, times = TIMES) =>
  alone(work, { XDG_CONFIG_HOME: folder }, times)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-store-'))
})
const original = { statSync: fs.statSync, rmSync: fs.rmSync, renameSync: fs.renameSync }
function replaceCalls(calls: object): void {
  Object.assign(fs, calls)
  syncBuiltinESMExports()
}
afterEach(() => {
  replaceCalls(original)
  rmSync(folder, { recursive: true, force: true })
})

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

test('so does one on a file system that caches times, as NFS', async () => {
  let cached: ReturnType<typeof original.statSync>
  replaceCalls({
    statSync(...args: Parameters<typeof original.statSync>) {
      cached ??= original.statSync(...args)
      return cached
    },
  })
  const done: string[] = []
  const first = run(async () => {
    await wait(5 * TIMES.quietMs)
    done.push('first')
  })
  const second = run(async () => void done.push('second'))
  await Promise.all([first, second])
  expect(done).toEqual(['first', 'second'])
})

function leaveLock(): void {
  mkdirSync(lock(), { recursive: true })
  writeFileSync(join(lock(), 'killed'), '')
}

test('the lock of a command that was killed is removed', async () => {
  leaveLock()
  expect(await run(async () => 'done')).toBe('done')
  expect(existsSync(lock())).toBe(false)
})

test('a folder without a lock is no lock', async () => {
  mkdirSync(lock(), { recursive: true })
  expect(await run(async () => 'done', { ...TIMES, quietMs: 60_000 })).toBe('done')
  expect(readdirSync(join(folder, 'portcullis'))).toEqual([])
})

const OTHER = `
import { alone } from './cli/login/store.ts'
const times = { pollMs: 1, beatMs: 60_000, quietMs: 1, waitMs: 60_000 }
await alone(() => process.exit(0), { XDG_CONFIG_HOME: process.argv[1] }, times)
`

test('of two commands that find the lock of a killed one, the slower does not take that of the faster', async () => {
  leaveLock()
  let found: readonly string[] | undefined
  // The other command takes the lock over after this one has decided to.
  const slowed =
    <Args extends unknown[]>(call: (...args: Args) => void) =>
    (...args: Args) => {
      if (found !== undefined) return call(...args)
      found = []
      const node = ['--input-type=module', '-e', OTHER, folder]
      expect(spawnSync(process.execPath, node, { cwd: ROOT }).status).toBe(0)
      try {
        call(...args)
      } finally {
        found = readdirSync(lock())
      }
    }
  replaceCalls({ rmSync: slowed(original.rmSync), renameSync: slowed(original.renameSync) })
  await run(async () => {})
  expect(found).toEqual([expect.not.stringMatching('killed')])
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
