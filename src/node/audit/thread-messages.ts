/** What a process and the thread of its audit trail send to each other. */
import type { StatementResult } from '../../audit/d1/database.ts'
import type { BoundStatement } from './database.ts'

/** The `workerData` of the thread. */
export interface ThreadData {
  /** `AUDIT_DATABASE`. */
  readonly database: string
  /** Environment variables, which were checked. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** Statements to run, or the begin or the end of consumption. */
export type ThreadRequest =
  | { readonly id: number; readonly statements: readonly BoundStatement[] }
  | 'consume'
  | 'close'

/** The result of statements. `opened` comes first. */
export type ThreadMessage =
  | { readonly id: number; readonly results: readonly StatementResult[] }
  | { readonly id: number; readonly error: unknown }
  | 'opened'
