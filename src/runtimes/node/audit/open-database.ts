/** Opens the audit database that `AUDIT_DATABASE` names. */
import { SQLITE } from '../../../audit/sql/dialect.ts'
import { sqlitePath } from '../schemas/audit-environment.ts'
import type { OpenDatabase } from './database.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

/** Opens the database of a valid `AUDIT_DATABASE`. Rejects with the error of the database. */
export async function openDatabase(address: string): Promise<OpenDatabase> {
  const path = sqlitePath(address)
  if (path === undefined) return openPostgres(address)
  const sqlite = openSqlite(path)
  return {
    dialect: SQLITE,
    run: async (statements) => sqlite.run(statements),
    scrub: async () => sqlite.scrub(),
    close: async () => sqlite.close(),
  }
}
