/** The deadline of the audit Worker's calls to D1. */
import { withDeadline } from '../../isolate/timers.ts'

/**
 * Timeout in milliseconds. D1 itself ends a statement after 30 s, so a later response is not
 * expected.
 */
export const D1_TIMEOUT_MS = 35_000

/**
 * Settles as `work` does, or rejects with `DeadlineExceeded`. After that, D1 may still apply the
 * statements.
 */
export const within = <Value>(work: Promise<Value>): Promise<Value> =>
  withDeadline(work, D1_TIMEOUT_MS)
