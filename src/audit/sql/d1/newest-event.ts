/**
 * The time of the newest event in the database, for the metrics. Every gateway has them, so this module does
 * not import the statements and the faults of the trail.
 */
import { withDeadline } from '../../../isolate/timers.ts'
import type { GivenDatabase } from './database.ts'

/** The value is at the end of an index, so reading it is fast. */
const NEWEST = [
  'SELECT time_ms AS ms FROM audit_events ORDER BY time_ms DESC LIMIT 1',
  'SELECT max_ms AS ms FROM audit_blocks ORDER BY max_ms DESC LIMIT 1',
]

const NEWEST_TIMEOUT_MS = 2_000

interface Newest {
  readonly ms: number
}

async function newestIn(db: GivenDatabase, statement: string): Promise<Newest | undefined> {
  try {
    if ('prepare' in db) {
      const [result] = await db.batch<Newest>([db.prepare(statement)])
      return result?.results[0]
    }
    const [result] = await db.run([{ texts: [statement], parts: [] }])
    return result?.rows[0] as Newest | undefined
  } catch (error) {
    // The database of an earlier version, which no consumer has migrated yet.
    if (isMissingTable(error)) return undefined
    throw error
  }
}

/** D1 has only a message. Other databases reject with a `DatabaseError`. */
const isMissingTable = (error: unknown): boolean =>
  error instanceof Error &&
  ('fault' in error ? error.fault === 'missing' : /no such table/i.test(error.message))

/**
 * Returns the time of the newest event, in milliseconds since the epoch. Returns undefined if there
 * is none, or if the database fails: the caller can still report its other values.
 */
export async function newestEventMs(db: GivenDatabase): Promise<number | undefined> {
  try {
    const newest = Promise.all(NEWEST.map((statement) => newestIn(db, statement)))
    const found = await withDeadline(newest, NEWEST_TIMEOUT_MS)
    const times = found.flatMap((row) => (row === undefined ? [] : [row.ms]))
    return times.length === 0 ? undefined : Math.max(...times)
  } catch {
    return undefined
  }
}
