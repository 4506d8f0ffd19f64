/** Blocks of the chain as rows of `audit_blocks`. */

import { MAX_SPAN_MS } from '../blocks/block.ts'
import { eventOfLine } from '../blocks/line.ts'
import { idsIn, searchColumnsOf, USAGE_NAMES, type UsageCount } from '../blocks/search-columns.ts'
import type { Block } from '../chain.ts'
import type { CountedEvent } from '../event.ts'
import { timeMs } from '../time-of-event.ts'
import type { ConsumerDatabase, TrailDatabase } from './database.ts'
import { type Sql, sql, text } from './statement.ts'

/** The columns of a row that a block consists of. */
export interface BlockRow extends Omit<Block, 'lines'> {
  readonly events: Uint8Array
}

export const BLOCK_COLUMNS = text('first_seq, last_seq, previous_hash, hash, events')

/** Returns the statements that store a block with these events. */
export async function insertBlock(
  db: ConsumerDatabase,
  { first_seq, last_seq, previous_hash, hash, lines }: Block,
  events: readonly CountedEvent[],
): Promise<readonly Sql[]> {
  const { min_ms, max_ms, start_ms, terms, ids, usage } = searchColumnsOf(events)
  const insert = sql`INSERT INTO audit_blocks (first_seq, last_seq, min_ms, max_ms, start_ms,
      previous_hash, hash, terms, ids, events)
    VALUES (${first_seq}, ${last_seq}, ${min_ms}, ${max_ms}, ${start_ms},
      ${previous_hash}, ${hash}, ${terms}, ${ids}, ${await compressed(db, lines)})`
  return [insert, ...insertUsage(db, first_seq, usage)]
}

/**
 * Returns the statements that replace the lines of a stored block. They fail if its row has changed
 * meanwhile.
 */
export async function replaceBlock(
  db: ConsumerDatabase,
  { first_seq, events: before }: BlockRow,
  lines: readonly string[],
): Promise<readonly Sql[]> {
  const { start_ms, terms, usage } = searchColumnsOf(lines.map(eventOfLine))
  const after = await compressed(db, lines)
  return [
    // If another erasure has changed the events, `terms` becomes NULL, which its column does not accept.
    sql`UPDATE audit_blocks SET terms = CASE WHEN events = ${before} THEN ${terms} END,
      events = ${after}, start_ms = ${start_ms} WHERE first_seq = ${first_seq}`,
    sql`DELETE FROM audit_usage WHERE first_seq = ${first_seq}`,
    ...insertUsage(db, first_seq, usage),
  ]
}

const compressed = async ({ compression }: TrailDatabase, lines: readonly string[]) =>
  compression.compress(lines.join('\n'))

/** Returns the lines of a block, joined by line feeds. */
export const textOf = async (
  { compression }: TrailDatabase,
  { events }: Pick<BlockRow, 'events'>,
): Promise<string> => compression.decompress(events)

export async function blockOf(db: TrailDatabase, row: BlockRow): Promise<Block> {
  const { events: _, ...place } = row
  return { ...place, lines: linesOf(await textOf(db, row)) }
}

const linesOf = (text: string): readonly string[] => text.split('\n')

/** Returns the lines that contain all needles, none of which has a line feed. Most texts have few such lines. */
export function linesWith(text: string, needles: readonly string[]): readonly string[] {
  const [first, ...others] = needles
  if (first === undefined) return linesOf(text)
  const found: string[] = []
  if (!others.every((needle) => text.includes(needle))) return found
  for (let at = text.indexOf(first); at !== -1; ) {
    const next = text.indexOf('\n', at)
    const end = next === -1 ? text.length : next
    const line = text.slice(text.lastIndexOf('\n', at) + 1, end)
    if (others.every((needle) => line.includes(needle))) found.push(line)
    at = text.indexOf(first, end)
  }
  return found
}

/** Events of one id have one time, so they are in blocks that overlap in time. */
const SPAN_MS = 60_000
/** An invocation of a Worker may make 50 queries. */
const MAX_RANGES = 8

/** Returns queries of the ids in all blocks that may contain one of the events already. */
export function idsAround(events: readonly CountedEvent[]): readonly Sql[] {
  const times = events.map(({ time }) => timeMs(time)).sort((a, b) => a - b)
  const ranges: { from: number; to: number }[] = []
  for (const ms of times) {
    const range = ranges.at(-1)
    if (range !== undefined && ms - range.to <= SPAN_MS) range.to = ms
    else ranges.push({ from: ms, to: ms })
  }
  const all = { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 }
  const asked = ranges.length > MAX_RANGES ? [all] : ranges
  return asked.map(
    ({ from, to }) => sql`SELECT ids FROM audit_blocks
      WHERE max_ms >= ${from} AND max_ms <= ${to + MAX_SPAN_MS} AND min_ms <= ${to}`,
  )
}

/** Returns the ids in rows of {@link idsAround}. */
export const knownIds = (rows: readonly unknown[]): readonly string[] =>
  (rows as { ids: Uint8Array }[]).flatMap(({ ids }) => idsIn(ids))

const USAGE_COLUMNS = ['first_seq', ...USAGE_NAMES]
const USAGE_INTEGERS = new Set(['first_seq', 'min_ms', 'max_ms', 'day', 'requests'])

const insertUsage = (
  db: ConsumerDatabase,
  firstSeq: number,
  counts: readonly UsageCount[],
): readonly Sql[] =>
  db.dialect.insert({
    table: 'audit_usage',
    columns: USAGE_COLUMNS,
    integers: USAGE_INTEGERS,
    rows: counts.map((one) => [firstSeq, ...USAGE_NAMES.map((name) => one[name])]),
  })
