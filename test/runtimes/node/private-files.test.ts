/** Files with personal data, which only the user of the process may read. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { directoryBucket } from '../../../src/runtimes/node/audit/directory.ts'
import { openSpoolFile } from '../../../src/runtimes/node/audit/spool/file.ts'
import { openSqlite } from '../../../src/runtimes/node/audit/sqlite.ts'
import { createPrivately } from '../../../src/runtimes/node/system/private-file.ts'

function modesIn(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true })
      .map(String)
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  )
}

test('the audit database, its journal and its exports have the mode 0600, whatever the umask is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-modes-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const umask = process.umask(0)
  onTestFinished(() => void process.umask(umask))
  const database = openSqlite(join(folder, 'audit.db'))
  onTestFinished(database.close)
  database.run([{ text: 'CREATE TABLE events (name TEXT)', values: [] }])
  await directoryBucket(folder).put('exports/2026/one.ndjson', new Uint8Array([1]), {
    onlyIf: { etagDoesNotMatch: '*' },
    sha256: new ArrayBuffer(0),
    httpMetadata: { contentType: 'application/x-ndjson' },
  })
  const { '.lock': _, ...modes } = modesIn(folder)
  expect(modes).toEqual({
    'audit.db': '600',
    'audit.db-shm': '600',
    'audit.db-wal': '600',
    'exports/2026/one.ndjson': '600',
  })
})

/** Returns the warnings that the process writes from now on. */
function newWarnings(): readonly string[] {
  const warnings: string[] = []
  const { warn } = console
  console.warn = (text: string) => void warnings.push(text)
  onTestFinished(() => {
    console.warn = warn
  })
  return warnings
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-modes-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('an audit database that others can read gets the mode 0600 when it is opened, with its journal and a warning', () => {
  const folder = newFolder()
  const warnings = newWarnings()
  const path = join(folder, 'audit.db')
  const earlier = openSqlite(path)
  onTestFinished(earlier.close)
  earlier.run([{ text: 'CREATE TABLE events (name TEXT)', values: [] }])
  earlier.run([{ text: "INSERT INTO events VALUES ('one')", values: [] }])
  for (const name of ['', '-shm', '-wal']) chmodSync(path + name, 0o644)
  const database = openSqlite(path)
  onTestFinished(database.close)
  expect(modesIn(folder)).toEqual({
    'audit.db': '600',
    'audit.db-shm': '600',
    'audit.db-wal': '600',
  })
  const [read] = database.run([{ text: 'SELECT name FROM events', values: [] }])
  expect(read?.rows).toEqual([{ name: 'one' }])
  expect(warnings).toHaveLength(3)
  expect(warnings[0]).toContain(`${path} had the mode 644`)
})

test('files of a spool that others can read get the mode 0600 when it is opened', () => {
  const folder = newFolder()
  const warnings = newWarnings()
  const spool = join(folder, 'spool')
  openSpoolFile(spool, 2 ** 20).close()
  for (const name of readdirSync(spool)) chmodSync(join(spool, name), 0o664)
  openSpoolFile(spool, 2 ** 20).close()
  expect(new Set(Object.values(modesIn(spool)))).toEqual(new Set(['600']))
  expect(warnings).not.toEqual([])
})

test('the file behind a symbolic link gets the mode 0600, with its journals', () => {
  const folder = newFolder()
  const [file, link] = ['audit.db', 'link.db'].map((name) => join(folder, name))
  if (file === undefined || link === undefined) throw new Error('no path')
  const earlier = openSqlite(file)
  onTestFinished(earlier.close)
  earlier.run([{ text: 'CREATE TABLE events (name TEXT)', values: [] }])
  for (const suffix of ['', '-shm', '-wal']) chmodSync(file + suffix, 0o644)
  symlinkSync(file, link)
  const database = openSqlite(link)
  onTestFinished(database.close)
  expect(new Set(Object.values(modesIn(folder)))).toEqual(new Set(['600']))
})

test('a stricter mode and a folder stay as they are, without a warning', () => {
  const folder = newFolder()
  const warnings = newWarnings()
  const [strict, target, link] = ['strict', 'target', 'link'].map((name) => join(folder, name))
  if (strict === undefined || target === undefined || link === undefined) throw new Error('no path')
  writeFileSync(strict, '')
  chmodSync(strict, 0o400)
  mkdirSync(target)
  chmodSync(target, 0o755)
  symlinkSync(target, link)
  for (const path of [strict, target, link]) createPrivately(path)
  expect((statSync(strict).mode & 0o777).toString(8)).toBe('400')
  expect((statSync(target).mode & 0o777).toString(8)).toBe('755')
  expect(warnings).toEqual([])
})
