/** How far the audit trail has got. */
import { withDeadline } from '../../timers.ts'

/** It is read from the end of an index. */
const QUERY_TIMEOUT_MS = 2_000

/**
 * When the newest event in the audit database was decided, milliseconds since the epoch. Undefined
 * where there is none, or the database does not say within two seconds: whoever asks wants to know
 * other things, too.
 */
export async function newestEventMs(db: D1Database): Promise<number | undefined> {
  try {
    const asked = db
      .prepare('SELECT time_ms FROM audit_events ORDER BY time_ms DESC LIMIT 1')
      .first<number>('time_ms')
    return (await withDeadline(asked, QUERY_TIMEOUT_MS)) ?? undefined
  } catch {
    return undefined
  }
}
