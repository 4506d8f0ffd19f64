import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { prepareAuditDatabase } from '../../../dev/start/audit-database.ts'

describe('the tables of the audit trail', () => {
  let root: string
  let applied: string[]

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'portcullis-tables-'))
    await mkdir(join(root, 'migrations'))
    await writeFile(join(root, 'audit.toml'), 'name = "audit"')
    await writeFile(join(root, 'migrations', '0001.sql'), 'CREATE TABLE a (id TEXT)')
    applied = []
  })

  afterEach(() => rm(root, { recursive: true }))

  const databaseOf = (state: string) => join(root, state, 'v3/d1/database.sqlite')
  const migrations = { database: 'audit', config: 'audit.toml', folder: 'migrations' }

  /** Writes the names of the applied migrations to the database, as a real program adds its tables. */
  async function apply(state: string): Promise<void> {
    applied.push(state)
    const file = join(state, 'v3/d1/database.sqlite')
    await mkdir(join(file, '..'), { recursive: true })
    await writeFile(file, (await readdir(join(root, 'migrations'))).join())
  }

  const prepare = (state: string) =>
    prepareAuditDatabase({ root, migrations, stateDirectory: join(root, state), apply })

  test('are created once, and copied to each new database', async () => {
    await prepare('state')
    await prepare('state-8788')
    expect(applied).toHaveLength(1)
    for (const state of ['state', 'state-8788'])
      expect(await readFile(databaseOf(state), 'utf8')).toBe('0001.sql')
  })

  test('are not applied again to a database that has them, nor copied over its rows', async () => {
    await prepare('state')
    await writeFile(databaseOf('state'), 'rows')
    await prepare('state')
    expect(applied).toHaveLength(1)
    expect(await readFile(databaseOf('state'), 'utf8')).toBe('rows')
  })

  test('are updated in place if a migration is new, or if the database does not say which it has', async () => {
    await prepare('state')
    await writeFile(join(root, 'migrations', '0002.sql'), 'CREATE TABLE b (id TEXT)')
    await prepare('state')
    expect(applied.at(-1)).toBe(join(root, 'state'))
    expect(await readFile(databaseOf('state'), 'utf8')).toBe('0001.sql,0002.sql')
    await rm(join(root, 'state/v3/d1/migrations.sha256'))
    await prepare('state')
    expect(applied).toHaveLength(3)
  })

  test('are created again after the database was deleted', async () => {
    await prepare('state')
    await rm(join(root, 'state/v3/d1'), { recursive: true })
    await prepare('state')
    expect(await readFile(databaseOf('state'), 'utf8')).toBe('0001.sql')
  })

  test('that cannot be created are an error, and leave nothing that a later start would use', async () => {
    const failing = async (state: string) => {
      await apply(state)
      throw new Error('no such table')
    }
    const options = { root, migrations, stateDirectory: join(root, 'state') }
    await expect(prepareAuditDatabase({ ...options, apply: failing })).rejects.toThrow('no such')
    expect(existsSync(databaseOf('state'))).toBe(false)
    await prepare('state')
    expect(applied).toHaveLength(2)
    expect(await readFile(databaseOf('state'), 'utf8')).toBe('0001.sql')
  })
})
