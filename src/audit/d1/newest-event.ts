/** Reads the time of the newest audit event. */
import { withDeadline } from '../../isolate/timers.ts'

/** Timeout in milliseconds. The value is at the end of an index, so reading it is fast. */
const QUERY_TIMEOUT_MS = 2_000

/**
 * Returns the time of the newest event in the audit database, in milliseconds since the epoch.
 * Returns undefined if there is no event, or if the database does not respond within two seconds.
 * It does not throw, so that the caller can still report its other values.
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
