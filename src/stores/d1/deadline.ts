/** How long the audit Worker waits for its database. */
import { withDeadline } from '../../timers.ts'

/** D1 ends a statement after 30 s by itself; an answer that is later is none. */
export const D1_TIMEOUT_MS = 35_000

/** Settles as `work` does, or rejects with `DeadlineExceeded`. What was asked may still be done. */
export const within = <Value>(work: Promise<Value>): Promise<Value> =>
  withDeadline(work, D1_TIMEOUT_MS)
