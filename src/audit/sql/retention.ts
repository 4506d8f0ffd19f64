/** Deletes audit events and dead letters at the end of their retention. */

import { type ChainPlace, PARTITION } from '../chain.ts'
import { hourOf } from '../hour-counts.ts'
import { type AppendOptions, keepCheckpoint } from './audit-chain.ts'
import { type ConsumerDatabase, changesOf, firstOf } from './database.ts'
import { within } from './schema.ts'
import { type Sql, sql, text } from './statement.ts'

interface RetentionOptions extends AppendOptions {
  /** Keeps the rows of the chain that are not exported yet. Default false. */
  readonly onlyExported?: boolean
}

/** `RETENTION_DAYS` of the audit Worker replaces it. */
export const DEFAULT_RETENTION_DAYS = 90
/** A statement may run 30 s, and on D1 and SQLite it blocks other statements. */
const ROWS_PER_STATEMENT = 5_000
const BLOCKS_PER_STATEMENT = 200
/** For each deletion: a million rows. The next run continues. */
const MAX_STATEMENTS = 200

/** Finds the end of the first run of rows that are all older than a given time. */
const lastRowBefore = (beforeMs: number, end: number): Sql =>
  sql`SELECT seq, hash FROM audit_events WHERE partition = ${PARTITION} AND seq < coalesce((
    SELECT seq FROM audit_events WHERE partition = ${PARTITION} AND seq IS NOT NULL AND time_ms >= ${beforeMs}
    ORDER BY seq LIMIT 1), 9e15) AND seq <= ${end} ORDER BY seq DESC LIMIT 1`
/** Finds the end of the first run of blocks of which all events are older than a given time. */
const lastBlockBefore = (beforeMs: number, end: number): Sql =>
  sql`SELECT last_seq AS seq, hash FROM audit_blocks WHERE first_seq < coalesce((
    SELECT first_seq FROM audit_blocks WHERE max_ms >= ${beforeMs} ORDER BY first_seq LIMIT 1), 9e15)
    AND last_seq <= ${end} ORDER BY first_seq DESC LIMIT 1`
/** Finds the begin of the rows, and of the blocks, that must stay. */
const keptRow = (beforeMs: number): Sql =>
  sql`SELECT seq FROM audit_events WHERE partition = ${PARTITION} AND seq IS NOT NULL
    AND time_ms >= ${beforeMs} ORDER BY seq LIMIT 1`
const keptBlock = (beforeMs: number): Sql =>
  sql`SELECT first_seq AS seq FROM audit_blocks WHERE max_ms >= ${beforeMs} ORDER BY first_seq LIMIT 1`
/** Finds the last row before the first row that is not exported. */
const EXPORTED = sql`SELECT coalesce(
  (SELECT min(first_seq) - 1 FROM audit_exports WHERE partition = ${PARTITION} AND done_ms IS NULL),
  (SELECT max(last_seq) FROM audit_exports WHERE partition = ${PARTITION}), 0) AS seq`
const ERASING = sql`SELECT 1 FROM audit_erasures WHERE done_ms IS NULL LIMIT 1`
/** Finds the time of the first event in blocks. An index has it. */
const FIRST_TIME = sql`SELECT min(min_ms) AS ms FROM audit_blocks`
const EVERYTHING = Number.MAX_SAFE_INTEGER

/**
 * Deletes events and dead letters from before `beforeMs` (milliseconds since the epoch). Deletes
 * rows of the chain only from its start, so an event that arrived late is deleted together with the
 * rows before it. A checkpoint records where the remaining chain starts.
 *
 * While an erasure is in progress, no rows of the chain are deleted, because the erasure could not
 * count them. Rejects with the error of the database; rows that were deleted before the error stay deleted.
 */
export async function deleteBefore(
  db: ConsumerDatabase,
  beforeMs: number,
  options: RetentionOptions,
): Promise<void> {
  await prune(db, beforeMs, options)
  await deleteAll(db, 'audit_events', sql`seq IS NULL AND time_ms < ${beforeMs}`)
  await deleteAll(db, 'dead_letters', sql`received_ms < ${beforeMs}`)
}

async function prune(
  db: ConsumerDatabase,
  beforeMs: number,
  { seal, nowMs, onlyExported = false }: RetentionOptions,
) {
  if ((await within(firstOf(db, ERASING))) !== undefined) return
  const exported = onlyExported ? await within(firstOf<{ seq: number }>(db, EXPORTED)) : undefined
  const until = exported?.seq ?? EVERYTHING
  const last = await lastBefore(db, beforeMs, until)
  if (last === undefined) return
  await within(db.run([keepCheckpoint(await seal('pruned', last, nowMs))]))
  const { seq } = last
  await deleteAll(db, 'audit_events', sql`partition = ${PARTITION} AND seq <= ${seq} ORDER BY seq`)
  await deleteAll(db, 'audit_usage', sql`first_seq <= ${seq} ORDER BY first_seq`)
  await deleteAll(
    db,
    'audit_blocks',
    sql`last_seq <= ${seq} ORDER BY first_seq`,
    BLOCKS_PER_STATEMENT,
  )
  await deleteAll(db, 'audit_checkpoints', sql`partition = ${PARTITION} AND seq < ${seq}`)
  const kept = await within(firstOf<{ ms: number | null }>(db, FIRST_TIME))
  const first = new Date(Math.min(kept?.ms ?? beforeMs, beforeMs)).toISOString()
  await deleteAll(db, 'audit_counts', sql`hour < ${hourOf(first)}`)
}

/** Returns the last row or block of the first run that is older than a given time. */
async function lastBefore(
  db: ConsumerDatabase,
  beforeMs: number,
  until: number,
): Promise<ChainPlace | undefined> {
  const kept = await within(db.run([keptRow(beforeMs), keptBlock(beforeMs)]))
  const [row, block] = kept.map(({ rows }) => (rows[0] as { seq: number } | undefined)?.seq)
  const end = Math.min(until, (row ?? EVERYTHING) - 1, (block ?? EVERYTHING) - 1)
  const found = await within(db.run([lastRowBefore(beforeMs, end), lastBlockBefore(beforeMs, end)]))
  const lasts = found.flatMap(({ rows }) => rows as readonly ChainPlace[])
  return lasts.sort((a, b) => b.seq - a.seq)[0]
}

async function deleteAll(
  db: ConsumerDatabase,
  table: string,
  which: Sql,
  limit = ROWS_PER_STATEMENT,
) {
  const from = text(table)
  const { rowId } = db.dialect
  const rows = sql`SELECT ${rowId} FROM ${from} WHERE ${which} LIMIT ${limit}`
  const statement = sql`DELETE FROM ${from} WHERE ${rowId} IN (${rows})`
  for (let run = 0; run < MAX_STATEMENTS; run += 1)
    if ((await within(changesOf(db, statement))) === 0) return
}
