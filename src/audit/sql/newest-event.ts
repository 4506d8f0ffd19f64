/** The time of the newest event in the database. */
import { withDeadline } from '../../isolate/timers.ts'
import type { AuditDatabase } from './database.ts'
import { isMissing } from './schema.ts'

/** A database of before, which a consumer has not migrated yet. */
function whenMissing(error: unknown): null {
  if (isMissing(error)) return null
  throw error
}

/** The value is at the end of an index, so reading it is fast. */
const NEWEST_TIMEOUT_MS = 2_000

/**
 * Returns the time of the newest event, in milliseconds since the epoch. Returns undefined if there
 * is none, or if the database fails: the caller can still report its other values.
 */
export async function newestEventMs(db: AuditDatabase): Promise<number | undefined> {
  try {
    const newest = Promise.all(
      [
        'SELECT time_ms FROM audit_events ORDER BY time_ms DESC LIMIT 1',
        'SELECT max_ms AS time_ms FROM audit_blocks ORDER BY max_ms DESC LIMIT 1',
      ].map((sql) => db.prepare(sql).first<number>('time_ms').catch(whenMissing)),
    )
    const times = (await withDeadline(newest, NEWEST_TIMEOUT_MS)).filter((ms) => ms !== null)
    return times.length === 0 ? undefined : Math.max(...times)
  } catch {
    return undefined
  }
}
