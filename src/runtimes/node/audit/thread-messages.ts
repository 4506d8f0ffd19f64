/** What a process and the thread of its audit trail send to each other. */
import type { StatementResult } from '../../../audit/sql/database.ts'
import type { SpoolPlace } from '../schemas/audit-environment.ts'
import type { BoundStatement } from './database.ts'

/** The `workerData` of the thread. */
export interface ThreadData {
  /** `AUDIT_DATABASE`. Undefined: the thread has only the spool. */
  readonly database: string | undefined
  /** Undefined: the gateway has no spool. */
  readonly spool: SpoolPlace | undefined
  /** Environment variables, which were checked. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** Statements to run, events for the spool, or the begin or the end of consumption. */
export type ThreadRequest =
  | { readonly id: number; readonly statements: readonly BoundStatement[] }
  | { readonly id: number; readonly events: readonly string[] }
  | 'consume'
  | 'close'

/** The results of statements, none for events of the spool. `opened` comes first. */
export type ThreadMessage =
  | { readonly id: number; readonly results: readonly StatementResult[] }
  | { readonly id: number; readonly error: unknown }
  | 'opened'
