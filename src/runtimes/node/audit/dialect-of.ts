/** The kind of the audit database. Opens nothing: a process may have no SQLite. */
import type { Migration, StoringDialect } from '../../../audit/sql/dialect.ts'
import { MIGRATIONS } from '../../../audit/sql/migrations.generated.ts'
import { POSTGRES } from '../../../audit/sql/postgres/dialect.ts'
import { POSTGRES_MIGRATIONS } from '../../../audit/sql/postgres/migrations.generated.ts'
import { SQLITE } from '../../../audit/sql/sqlite/storing-dialect.ts'
import { sqlitePath } from '../environment/audit-environment.ts'

const isSqlite = (address: string | undefined) =>
  address === undefined || sqlitePath(address) !== undefined

/** Returns the dialect of the database that a valid `AUDIT_DATABASE` names. */
export const dialectOf = (address: string | undefined): StoringDialect =>
  isSqlite(address) ? SQLITE : POSTGRES

/** Returns the migrations of the database that a valid `AUDIT_DATABASE` names. */
export const migrationsOf = (address: string | undefined): readonly Migration[] =>
  isSqlite(address) ? MIGRATIONS : POSTGRES_MIGRATIONS
