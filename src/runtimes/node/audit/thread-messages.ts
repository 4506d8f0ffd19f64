/** What a process and the thread of its audit trail send to each other. */
import type { Fault, Result } from '../../../audit/sql/database.ts'
import type { Rendered } from '../../../audit/sql/statement.ts'
import type { SpoolPlace } from '../environment/audit-environment.ts'

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
  | { readonly id: number; readonly statements: readonly Rendered[] }
  | { readonly id: number; readonly events: readonly string[] }
  | 'consume'
  | 'close'

/** The methods of the console that the thread uses. */
export const LEVELS = ['info', 'warn', 'error'] as const

/** The results of statements, none for events of the spool, or a text for the console. `opened` comes before results. */
export type ThreadMessage =
  | { readonly id: number; readonly results: readonly Result[] }
  | {
      readonly id: number
      readonly error: unknown
      /** Of a `DatabaseError`, whose class does not pass from thread to thread. */
      readonly fault?: Fault | undefined
    }
  | { readonly level: (typeof LEVELS)[number]; readonly text: string }
  | 'opened'
