/** Blocks of the chain as rows of `audit_blocks`. */

import { STREAMS } from '../blocks/compression.ts'
import { eventOfLine } from '../blocks/line.ts'
import { idsIn, searchColumnsOf, USAGE_NAMES, type UsageCount } from '../blocks/search-columns.ts'
import type { Block } from '../chain.ts'
import type { AuditEvent } from '../event.ts'
import { type AuditDatabase, type AuditStatement, type Bytes, bytesOf } from './database.ts'
import { insertRows } from './insert-rows.ts'

/** The columns of a row that a block consists of. */
export interface BlockRow extends Omit<Block, 'lines'> {
  readonly events: Bytes
}

export const BLOCK_COLUMNS = 'first_seq, last_seq, previous_hash, hash, events'

const INSERT =
  'INSERT INTO audit_blocks (first_seq, last_seq, min_ms, max_ms, start_ms, previous_hash, hash, terms, ' +
  'ids, events) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
// If another erasure has changed the events, `terms` becomes NULL, which its column does not accept.
const REPLACE =
  'UPDATE audit_blocks SET terms = CASE WHEN events = ?4 THEN ?1 END, events = ?2, start_ms = ?5 ' +
  'WHERE first_seq = ?3'
const FORGET_USAGE = 'DELETE FROM audit_usage WHERE first_seq = ?'
const IDS = 'SELECT ids FROM audit_blocks WHERE max_ms >= ? AND min_ms <= ?'

/** Returns the statements that store a block with these events. */
export async function insertBlock(
  db: AuditDatabase,
  { first_seq, last_seq, previous_hash, hash, lines }: Block,
  events: readonly AuditEvent[],
): Promise<AuditStatement[]> {
  const { min_ms, max_ms, start_ms, terms, ids, usage } = searchColumnsOf(events)
  const values = [
    ...[first_seq, last_seq, min_ms, max_ms, start_ms, previous_hash, hash, terms, ids],
    await compressed(db, lines),
  ]
  return [db.prepare(INSERT).bind(...values), ...insertUsage(db, first_seq, usage)]
}

/**
 * Returns the statements that replace the lines of a stored block. They fail if its row has changed
 * meanwhile.
 */
export async function replaceBlock(
  db: AuditDatabase,
  { first_seq, events: before }: BlockRow,
  lines: readonly string[],
): Promise<AuditStatement[]> {
  const { start_ms, terms, usage } = searchColumnsOf(lines.map(eventOfLine))
  const text = await compressed(db, lines)
  return [
    db.prepare(REPLACE).bind(terms, text, first_seq, bytesOf(before), start_ms),
    db.prepare(FORGET_USAGE).bind(first_seq),
    ...insertUsage(db, first_seq, usage),
  ]
}

const compressed = async ({ compression = STREAMS }: AuditDatabase, lines: readonly string[]) =>
  compression.compress(lines.join('\n'))

/** Returns the lines of a block, joined by line feeds. */
export const textOf = async (
  { compression = STREAMS }: AuditDatabase,
  { events }: Pick<BlockRow, 'events'>,
): Promise<string> => compression.decompress(bytesOf(events))

export async function blockOf(db: AuditDatabase, row: BlockRow): Promise<Block> {
  const { events: _, ...place } = row
  return { ...place, lines: linesOf(await textOf(db, row)) }
}

export const linesOf = (text: string): readonly string[] => text.split('\n')

/** Events of one id have one time, so they are in blocks that overlap in time. */
const SPAN_MS = 60_000
/** An invocation of a Worker may make 50 queries. */
const MAX_RANGES = 8

/** Returns queries of the ids in all blocks that may contain one of the events already. */
export function idsAround(db: AuditDatabase, events: readonly AuditEvent[]): AuditStatement[] {
  const times = events.map(({ time }) => Date.parse(time)).sort((a, b) => a - b)
  const ranges: { from: number; to: number }[] = []
  for (const ms of times) {
    const range = ranges.at(-1)
    if (range !== undefined && ms - range.to <= SPAN_MS) range.to = ms
    else ranges.push({ from: ms, to: ms })
  }
  const all = { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 }
  const asked = ranges.length > MAX_RANGES ? [all] : ranges
  return asked.map(({ from, to }) => db.prepare(IDS).bind(from, to))
}

/** Returns the ids in rows of {@link idsAround}. */
export const knownIds = (rows: readonly unknown[]): readonly string[] =>
  (rows as { ids: Bytes }[]).flatMap(({ ids }) => idsIn(bytesOf(ids)))

const USAGE_COLUMNS = ['first_seq', ...USAGE_NAMES]
const USAGE_INTEGERS = new Set(['first_seq', 'min_ms', 'max_ms', 'day', 'requests'])

const insertUsage = (
  db: AuditDatabase,
  firstSeq: number,
  counts: readonly UsageCount[],
): AuditStatement[] =>
  insertRows(db, {
    table: 'audit_usage',
    columns: USAGE_COLUMNS,
    integers: USAGE_INTEGERS,
    rows: counts.map((one) => [firstSeq, ...USAGE_NAMES.map((name) => one[name])]),
  })
