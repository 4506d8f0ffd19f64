/** Files with personal data, which only the user of the process may read. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { directoryBucket } from '../../src/node/audit/directory.ts'
import { openSqlite } from '../../src/node/audit/sqlite.ts'

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
  database.run([{ sql: 'CREATE TABLE events (name TEXT)', values: [] }])
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
