/** The counts of hours as rows of `audit_counts`. */
import * as z from 'zod/mini'
import type { AuditEvent } from '../event.ts'
import { countHours, type HourCounts, hourCountsSchema, hourOf } from '../hour-counts.ts'
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
const BETWEEN = 'SELECT hour, counts FROM audit_counts WHERE hour >= ? AND hour <= ? ORDER BY hour'
const FIRST = 'SELECT hour, first_seq FROM audit_counts ORDER BY hour LIMIT 1'

/** Returns the query of the hours of events. */
export function findHours(db: AuditDatabase, events: readonly AuditEvent[]): AuditStatement {
  const hours = [...new Set(events.map(({ time }) => hourOf(time)))]
  return db.prepare(FIND).bind(JSON.stringify(hours.map((hour) => [hour])))
}

export const hoursIn = (rows: readonly unknown[]): ReadonlyMap<string, HourCounts> =>
  new Map((rows as HourRow[]).map((row) => [row.hour, countsOf(row)]))

const countsOf = ({ counts }: HourRow): HourCounts => z.parse(hourCountsSchema, JSON.parse(counts))

/** Returns the statements that count new events, from `firstSeq` on. For the transaction that stores them. */
export const keepHours = (
  db: AuditDatabase,
  stored: ReadonlyMap<string, HourCounts>,
  firstSeq: number,
  events: readonly AuditEvent[],
): readonly AuditStatement[] =>
  [...countHours(stored, events)].map(([hour, counts]) =>
    db.prepare(KEEP).bind(hour, firstSeq, JSON.stringify(counts)),
  )

/** Returns the hours from `first` to `last`, in their order. Does NOT check the rows, which the gateway has written. */
export async function readHours(
  db: AuditDatabase,
  first: string,
  last: string,
): Promise<readonly (readonly [hour: string, HourCounts])[]> {
  const { results } = await db.prepare(BETWEEN).bind(first, last).all<HourRow>()
  return results.map(({ hour, counts }) => [hour, JSON.parse(counts) as HourCounts])
}

export interface FirstHour {
  readonly hour: string
  /** The number of the first event that was counted. */
  readonly first_seq: number
}

/** Returns the first hour that is counted. */
export const firstHour = async (db: AuditDatabase): Promise<FirstHour | undefined> =>
  (await db.prepare(FIRST).all<FirstHour>()).results[0]
