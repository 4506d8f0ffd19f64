/** Deletes audit events and dead letters at the end of their retention. */

import { type ChainPlace, PARTITION } from '../chain.ts'
import { hourOf } from '../hour-counts.ts'
import { type AppendOptions, keepCheckpoint } from './audit-chain.ts'
import type { AuditDatabase } from './database.ts'
import { SQLITE } from './dialect.ts'
import { within } from './schema.ts'

interface RetentionOptions extends AppendOptions {
  /** Keeps the rows of the chain that are not exported yet. Default false. */
  readonly onlyExported?: boolean
}

/** `RETENTION_DAYS` of the audit Worker replaces it. */
export const DEFAULT_RETENTION_DAYS = 90
/** A D1 statement may run 30 s, and it blocks other statements. */
const ROWS_PER_STATEMENT = 5_000
const BLOCKS_PER_STATEMENT = 200
/** For each deletion: a million rows. The next run continues. */
const MAX_STATEMENTS = 200

/** Finds the end of the first run of rows that are all older than a given time. */
const LAST_BEFORE =
  'SELECT seq, hash FROM audit_events WHERE partition = ?1 AND seq < coalesce((' +
  'SELECT seq FROM audit_events WHERE partition = ?1 AND seq IS NOT NULL AND time_ms >= ?2 ' +
  'ORDER BY seq LIMIT 1), 9e15) AND seq <= ?3 ORDER BY seq DESC LIMIT 1'
/** Finds the end of the first run of blocks of which all events are older than a given time. */
const LAST_BLOCK_BEFORE =
  'SELECT last_seq AS seq, hash FROM audit_blocks WHERE first_seq < coalesce((' +
  'SELECT first_seq FROM audit_blocks WHERE max_ms >= ?1 ORDER BY first_seq LIMIT 1), 9e15) ' +
  'AND last_seq <= ?2 ORDER BY first_seq DESC LIMIT 1'
/** Finds the begin of the rows, and of the blocks, that must stay. */
const KEPT_ROW =
  'SELECT seq FROM audit_events WHERE partition = ?1 AND seq IS NOT NULL AND time_ms >= ?2 ' +
  'ORDER BY seq LIMIT 1'
const KEPT_BLOCK =
  'SELECT first_seq AS seq FROM audit_blocks WHERE max_ms >= ? ORDER BY first_seq LIMIT 1'
/** Finds the last row before the first row that is not exported. */
const EXPORTED =
  'SELECT coalesce((SELECT min(first_seq) - 1 FROM audit_exports WHERE partition = ?1 AND ' +
  'done_ms IS NULL), (SELECT max(last_seq) FROM audit_exports WHERE partition = ?1), 0) AS seq'
const ERASING = 'SELECT 1 FROM audit_erasures WHERE done_ms IS NULL LIMIT 1'
/** Finds the time of the first event in blocks. An index has it. */
const FIRST_TIME = 'SELECT min(min_ms) AS ms FROM audit_blocks'
const EVERYTHING = Number.MAX_SAFE_INTEGER

/**
 * Deletes events and dead letters from before `beforeMs` (milliseconds since the epoch). Deletes
 * rows of the chain only from its start, so an event that arrived late is deleted together with the
 * rows before it. A checkpoint records where the remaining chain starts.
 *
 * While an erasure is in progress, no rows of the chain are deleted, because the erasure could not
 * count them. Rejects with D1's error; rows that were deleted before the error stay deleted.
 */
export async function deleteBefore(
  db: AuditDatabase,
  beforeMs: number,
  options: RetentionOptions,
): Promise<void> {
  await prune(db, beforeMs, options)
  await deleteAll(db, 'audit_events', 'seq IS NULL AND time_ms < ?', [beforeMs])
  await deleteAll(db, 'dead_letters', 'received_ms < ?', [beforeMs])
}

async function prune(
  db: AuditDatabase,
  beforeMs: number,
  { seal, nowMs, onlyExported = false }: RetentionOptions,
) {
  if ((await within(db.prepare(ERASING).first())) !== null) return
  const exported = onlyExported
    ? await within(db.prepare(EXPORTED).bind(PARTITION).first<{ seq: number }>())
    : undefined
  const until = exported?.seq ?? EVERYTHING
  const last = await lastBefore(db, beforeMs, until)
  if (last === undefined) return
  await within(keepCheckpoint(db, await seal('pruned', last, nowMs)).run())
  const place = [PARTITION, last.seq]
  await deleteAll(db, 'audit_events', 'partition = ? AND seq <= ? ORDER BY seq', place)
  await deleteAll(db, 'audit_usage', 'first_seq <= ? ORDER BY first_seq', [last.seq])
  await deleteAll(
    db,
    'audit_blocks',
    'last_seq <= ? ORDER BY first_seq',
    [last.seq],
    BLOCKS_PER_STATEMENT,
  )
  await deleteAll(db, 'audit_checkpoints', 'partition = ? AND seq < ?', place)
  const kept = await within(db.prepare(FIRST_TIME).first<{ ms: number | null }>())
  const first = new Date(Math.min(kept?.ms ?? beforeMs, beforeMs)).toISOString()
  await deleteAll(db, 'audit_counts', 'hour < ?', [hourOf(first)])
}

/** Returns the last row or block of the first run that is older than a given time. */
async function lastBefore(
  db: AuditDatabase,
  beforeMs: number,
  until: number,
): Promise<ChainPlace | undefined> {
  const [row, block] = (
    await within(
      db.batch<{ seq: number }>([
        db.prepare(KEPT_ROW).bind(PARTITION, beforeMs),
        db.prepare(KEPT_BLOCK).bind(beforeMs),
      ]),
    )
  ).map(({ results }) => results[0]?.seq ?? EVERYTHING)
  const end = Math.min(until, (row ?? EVERYTHING) - 1, (block ?? EVERYTHING) - 1)
  const found = await within(
    db.batch<ChainPlace>([
      db.prepare(LAST_BEFORE).bind(PARTITION, beforeMs, end),
      db.prepare(LAST_BLOCK_BEFORE).bind(beforeMs, end),
    ]),
  )
  const lasts = found.flatMap(({ results }) => results)
  return lasts.sort((a, b) => b.seq - a.seq)[0]
}

async function deleteAll(
  db: AuditDatabase,
  table: string,
  which: string,
  values: readonly (string | number)[],
  limit = ROWS_PER_STATEMENT,
) {
  const { rowId } = db.dialect ?? SQLITE
  const rows = `SELECT ${rowId} FROM ${table} WHERE ${which} LIMIT ${limit}`
  const statement = db.prepare(`DELETE FROM ${table} WHERE ${rowId} IN (${rows})`).bind(...values)
  for (let run = 0; run < MAX_STATEMENTS; run += 1) {
    const { meta } = await within(statement.run())
    if (meta.changes === 0) return
  }
}
