/** A database of a version before the blocks; `measure-migration.ts` tries it with a million events. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Tried, tryMigration } from './migration.ts'

const [ROWS, IN_BLOCKS] = [2_000, 1_500]
const folder = mkdtempSync(join(tmpdir(), 'portcullis-migration-'))
let tried: Tried
beforeAll(async () => {
  tried = await tryMigration(folder, ROWS, IN_BLOCKS)
})
afterAll(() => rmSync(folder, { recursive: true }))

test('the chain of the rows continues in blocks, and is verified over the change', () => {
  const all = ROWS + IN_BLOCKS
  expect(tried.verdicts.migrated).toMatchObject({ ok: true, first: 1, last: all, unchained: 0 })
})

test('queries find events of the rows and of the blocks', () => {
  expect(tried.found).toEqual({
    'request in rows': 1,
    'request in blocks': 1,
    subject: 7,
    newest: 100,
    'rows only': 100,
    nobody: 0,
  })
})

test('an erasure reaches rows and blocks, and the chain stays valid', () => {
  expect(tried.erased).toBe(7)
  expect(tried.verdicts.erased).toMatchObject({ ok: true, erased: 7, unexplained: 0 })
})

test('the export has rows and blocks, and is verified without the database', () => {
  expect(tried.verdicts.exported).toMatchObject({ ok: true, first: 1, erased: 7 })
  expect(tried.verdicts.exported.last).toBe(tried.verdicts.erased.last)
})

test('retention deletes the oldest rows, and the rest of the chain stays valid', () => {
  expect(tried.verdicts.retained).toMatchObject({ ok: true, first: ROWS / 2 + 1 })
})
