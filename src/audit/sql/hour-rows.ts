/** The counts of hours as rows of `audit_counts`. */
import type { CountedEvent } from '../event.ts'
import { countHours, type HourCounts, hourMs, hourOf, parseCounts } from '../hour-counts.ts'
import { type ConsumerDatabase, firstOf, rowsOf, type TrailDatabase } from './database.ts'
import { type Sql, sql } from './statement.ts'

interface HourRow {
  readonly hour: string
  readonly counts: string
}

/** A week overlaps up to 169 hours. Of about 17 KB each, and at most 50 KB. An isolate has 128 MB. */
const HOURS_PER_READ = 7 * 24 + 1
const FIRST = sql`SELECT hour, (SELECT count(*) FROM (SELECT 1 FROM audit_blocks
    WHERE audit_blocks.first_seq < audit_counts.first_seq LIMIT 1) AS before) AS older
  FROM audit_counts ORDER BY hour LIMIT 1`

/** Returns the query of the hours of events. */
export function findHours({ dialect }: ConsumerDatabase, events: readonly CountedEvent[]): Sql {
  const hours = [...new Set(events.map(({ time }) => hourOf(time)))]
  return sql`SELECT hour, counts FROM audit_counts WHERE ${dialect.isAmong('hour', hours)}`
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
  stored: StoredHours,
  firstSeq: number,
  events: readonly CountedEvent[],
): readonly Sql[] {
  const readable = new Map<string, HourCounts>()
  const unreadable = new Set<string>()
  for (const [hour, counts] of stored)
    if (counts === undefined) unreadable.add(hour)
    else readable.set(hour, counts)
  const counted =
    unreadable.size === 0 ? events : events.filter(({ time }) => !unreadable.has(hourOf(time)))
  // The chain's head has moved in the same transaction, so no other consumer has written since the row was read.
  return [...countHours(readable, counted)].map(
    ([hour, counts]) =>
      sql`INSERT INTO audit_counts (hour, first_seq, counts) VALUES (${hour}, ${firstSeq}, ${JSON.stringify(counts)})
        ON CONFLICT (hour) DO UPDATE SET counts = excluded.counts`,
  )
}

/**
 * Calls `each` with the hours from `first` to `last`, in their order. Undefined: the counts have another form. Has only a
 * week of them in memory.
 */
export async function eachHour(
  db: TrailDatabase,
  first: string,
  last: string,
  each: (hour: string, counts: HourCounts | undefined) => void,
): Promise<void> {
  for (let after = hourBefore(first); ; ) {
    const rows = await rowsOf<HourRow>(
      db,
      sql`SELECT hour, counts FROM audit_counts WHERE hour > ${after} AND hour <= ${last}
        ORDER BY hour LIMIT ${HOURS_PER_READ}`,
    )
    for (const { hour, counts } of rows) each(hour, parseCounts(counts))
    if (rows.length < HOURS_PER_READ) return
    after = rows.at(-1)?.hour ?? last
  }
}

const hourBefore = (hour: string): string => hourOf(new Date(hourMs(hour) - 1).toISOString())

export interface FirstHour {
  readonly hour: string
  /** 1 if a block has earlier events, which are not counted. 0: none. */
  readonly older: number
}

/** Returns the first hour that is counted. */
export const firstHour = (db: TrailDatabase): Promise<FirstHour | undefined> =>
  firstOf<FirstHour>(db, FIRST)
