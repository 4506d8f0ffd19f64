/**
 * Tries the change from rows to blocks with many events:
 * `node test/audit/measure-migration.ts [rows] [events in blocks] [sqlite | postgres]`. Prints the time of each step, what
 * queries found, and the verdicts. PostgreSQL is a server of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../harness/postgres.ts'
import { tryMigration } from './migration.ts'

const [before = '1000000', after = '100000', kind = 'sqlite'] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'portcullis-migration-'))
const server = kind === 'postgres' ? await startPostgres() : undefined
try {
  const { found, verdicts, erased } = await tryMigration(
    folder,
    Number(before),
    Number(after),
    await server?.database('migration'),
    (step, ms) => console.log(`${step}: ${ms} ms`),
  )
  for (const [query, count] of Object.entries(found)) console.log(`${query}: ${count} events`)
  console.log(`erased: ${erased}`)
  for (const [step, { findings, ...verdict }] of Object.entries(verdicts))
    console.log(step, JSON.stringify(verdict), findings.slice(0, 3))
} finally {
  await server?.close()
  rmSync(folder, { recursive: true })
}
