/** A database of a version before the blocks; `measure-migration.ts` tries it with a million events. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { ROOT } from '../harness/process.ts'
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

/** Has a transaction open while the test begins its own. */
const OTHER_PROCESS = `
const { workerData, parentPort } = require('node:worker_threads')
const db = new (require('node:sqlite').DatabaseSync)(workerData)
db.exec("CREATE TABLE IF NOT EXISTS names (name TEXT); BEGIN IMMEDIATE; INSERT INTO names VALUES ('other')")
parentPort.once('message', () => setTimeout(() => db.exec('COMMIT'), 300))
parentPort.postMessage('begun')
`

test('a migration waits for that of another process that starts at the same time', async () => {
  const path = join(folder, 'shared.db')
  const [earlier, database] = await Promise.all([1, 2].map(() => openDatabase(`sqlite:${path}`)))
  if (earlier === undefined || database === undefined) throw new Error('missing databases')
  const table = { text: 'CREATE TABLE IF NOT EXISTS names (name TEXT)', values: [] }
  const names = { text: 'SELECT name FROM names', values: [] }
  await earlier.run([table])
  // As before each migration: SQLite knows then that the table exists.
  await database.run([names])
  const other = new Worker(OTHER_PROCESS, { eval: true, workerData: path })
  await once(other, 'message')
  other.postMessage('begins')
  await database.migrate([table, { text: "INSERT INTO names VALUES ('own')", values: [] }])
  const [read] = await database.run([names])
  expect(read?.rows).toEqual([{ name: 'other' }, { name: 'own' }])
  await once(other, 'exit')
  await Promise.all([earlier.close(), database.close()])
})

test('a start waits for another process that writes the new file', async () => {
  const path = join(folder, 'new.db')
  const other = new Worker(OTHER_PROCESS, { eval: true, workerData: path })
  await once(other, 'message')
  other.postMessage('begins')
  const database = await openDatabase(`sqlite:${path}`)
  const [mode, read] = await database.run(
    ['PRAGMA journal_mode', 'SELECT name FROM names'].map((text) => ({ text, values: [] })),
  )
  expect(mode?.rows).toEqual([{ journal_mode: 'wal' }])
  expect(read?.rows).toEqual([{ name: 'other' }])
  await once(other, 'exit')
  await database.close()
})

/** Opens and migrates each database that it is sent, opens its spool, and sends what failed. */
const STARTING = `
import { openDatabase } from ${JSON.stringify(join(ROOT, 'src/runtimes/node/audit/open-database.ts'))}
import { openSpoolFile } from ${JSON.stringify(join(ROOT, 'src/runtimes/node/audit/spool/file.ts'))}
process.on('message', async (path) => {
  try {
    const database = await openDatabase('sqlite:' + path)
    await database.migrate([{ text: 'CREATE TABLE IF NOT EXISTS names (name TEXT)', values: [] }])
    await database.close()
    openSpoolFile(path + '.spool', 1048576).close()
    process.send('started')
  } catch (error) {
    process.send(String(error))
  }
})
process.send('ready')
`

test('processes that start at the same time with a new file all start', async () => {
  const program = join(folder, 'starting.mjs')
  writeFileSync(program, STARTING)
  const processes = [1, 2, 3, 4].map(() => fork(program))
  onTestFinished(() => processes.forEach((one) => void one.kill('SIGKILL')))
  await Promise.all(processes.map((one) => once(one, 'message')))
  for (let round = 0; round < 30; round += 1) {
    const replies = processes.map((one) => once(one, 'message'))
    for (const one of processes) one.send(join(folder, `start-${round}.db`))
    expect(await Promise.all(replies)).toEqual(processes.map(() => ['started', undefined]))
  }
})
