/** The time of the newest event in the database. */
import { withDeadline } from '../../isolate/timers.ts'
import { firstOf, type TrailDatabase } from './database.ts'
import { isMissing } from './schema.ts'
import { sql } from './statement.ts'

/** The database of an earlier version, which no consumer has migrated yet. */
function whenMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined
  throw error
}

/** The value is at the end of an index, so reading it is fast. */
const NEWEST_TIMEOUT_MS = 2_000

/**
 * Returns the time of the newest event, in milliseconds since the epoch. Returns undefined if there
 * is none, or if the database fails: the caller can still report its other values.
 */
export async function newestEventMs(db: TrailDatabase): Promise<number | undefined> {
  try {
    const newest = Promise.all(
      [
        sql`SELECT time_ms AS ms FROM audit_events ORDER BY time_ms DESC LIMIT 1`,
        sql`SELECT max_ms AS ms FROM audit_blocks ORDER BY max_ms DESC LIMIT 1`,
      ].map((statement) => firstOf<{ ms: number }>(db, statement).catch(whenMissing)),
    )
    const found = await withDeadline(newest, NEWEST_TIMEOUT_MS)
    const times = found.flatMap((row) => (row === undefined ? [] : [row.ms]))
    return times.length === 0 ? undefined : Math.max(...times)
  } catch {
    return undefined
  }
}
