/** Opens the audit database that `AUDIT_DATABASE` names. */
import { sqlitePath } from '../environment/audit-environment.ts'
import type { OpenDatabase } from './database.ts'
import { dialectOf, migrationsOf } from './dialect-of.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

/** Opens the database of a valid `AUDIT_DATABASE`. Rejects with the error of the database. */
export async function openDatabase(address: string): Promise<OpenDatabase> {
  const path = sqlitePath(address)
  const kind = { dialect: dialectOf(address), migrations: migrationsOf(address) }
  if (path === undefined) return { ...kind, ...(await openPostgres(address)) }
  const sqlite = openSqlite(path)
  return {
    ...kind,
    run: async (statements) => sqlite.run(statements),
    migrate: async (statements) => sqlite.migrate(statements),
    scrub: async () => sqlite.scrub(),
    close: async () => sqlite.close(),
  }
}
