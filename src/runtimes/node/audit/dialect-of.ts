/** The dialect of the audit database. Opens nothing: a process may have no SQLite. */
import { type Dialect, SQLITE } from '../../../audit/sql/dialect.ts'
import { POSTGRES } from '../../../audit/sql/postgres/dialect.ts'
import { sqlitePath } from '../schemas/audit-environment.ts'

/** Returns the dialect of the database that a valid `AUDIT_DATABASE` names. */
export const dialectOf = (address: string | undefined): Dialect =>
  address === undefined || sqlitePath(address) !== undefined ? SQLITE : POSTGRES
