/** The counts of hours as rows of `audit_counts`. */
import type { AuditEvent } from '../event.ts'
import { countHours, type HourCounts, hourMs, hourOf, parseCounts } from '../hour-counts.ts'
import type { AuditDatabase, AuditStatement } from './database.ts'

interface HourRow {
  readonly hour: string
  readonly counts: string
}

const FIND =
  'SELECT hour, counts FROM audit_counts WHERE hour IN (SELECT value ->> 0 FROM json_each(?))'
// The chain's head has moved in the same transaction, so no other consumer has written since the row was read.
const KEEP =
  'INSERT INTO audit_counts (hour, first_seq, counts) VALUES (?, ?, ?) ' +
  'ON CONFLICT (hour) DO UPDATE SET counts = excluded.counts'
const BETWEEN =
  'SELECT hour, counts FROM audit_counts WHERE hour > ? AND hour <= ? ORDER BY hour LIMIT ?'
/** Of up to 50 KB each. An isolate has 128 MB. */
const HOURS_PER_READ = 24
const FIRST = 'SELECT hour, first_seq FROM audit_counts ORDER BY hour LIMIT 1'

/** Returns the query of the hours of events. */
export function findHours(db: AuditDatabase, events: readonly AuditEvent[]): AuditStatement {
  const hours = [...new Set(events.map(({ time }) => hourOf(time)))]
  return db.prepare(FIND).bind(JSON.stringify(hours.map((hour) => [hour])))
}

/** Counts of hours. Undefined: they have another form, such as that of a later version. */
type StoredHours = ReadonlyMap<string, HourCounts | undefined>

export const hoursIn = (rows: readonly unknown[]): StoredHours =>
  new Map((rows as HourRow[]).map(({ hour, counts }) => [hour, parseCounts(counts)]))

/**
 * Returns the statements that count new events, from `firstSeq` on. For the transaction that stores them. An hour that
 * cannot be read stays as it is: counts follow from events, so they never prevent that an event is stored.
 */
export function keepHours(
  db: AuditDatabase,
  stored: StoredHours,
  firstSeq: number,
  events: readonly AuditEvent[],
): readonly AuditStatement[] {
  const readable = new Map<string, HourCounts>()
  const unreadable = new Set<string>()
  for (const [hour, counts] of stored)
    if (counts === undefined) unreadable.add(hour)
    else readable.set(hour, counts)
  const counted =
    unreadable.size === 0 ? events : events.filter(({ time }) => !unreadable.has(hourOf(time)))
  return [...countHours(readable, counted)].map(([hour, counts]) =>
    db.prepare(KEEP).bind(hour, firstSeq, JSON.stringify(counts)),
  )
}

/**
 * Calls `each` with the hours from `first` to `last`, in their order. Undefined: the counts have another form. Has only a
 * day of them in memory.
 */
export async function eachHour(
  db: AuditDatabase,
  first: string,
  last: string,
  each: (hour: string, counts: HourCounts | undefined) => void,
): Promise<void> {
  for (let after = hourBefore(first); ; ) {
    const page = db.prepare(BETWEEN).bind(after, last, HOURS_PER_READ)
    const { results } = await page.all<HourRow>()
    for (const { hour, counts } of results) each(hour, parseCounts(counts))
    if (results.length < HOURS_PER_READ) return
    after = results.at(-1)?.hour ?? last
  }
}

const hourBefore = (hour: string): string => hourOf(new Date(hourMs(hour) - 1).toISOString())

export interface FirstHour {
  readonly hour: string
  /** The number of the first event that was counted. */
  readonly first_seq: number
}

/** Returns the first hour that is counted. */
export const firstHour = async (db: AuditDatabase): Promise<FirstHour | undefined> =>
  (await db.prepare(FIRST).all<FirstHour>()).results[0]
