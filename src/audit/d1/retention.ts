/** Deletes audit events and dead letters at the end of their retention. */

import { type ChainPlace, PARTITION } from '../chain.ts'
import { type AppendOptions, keepCheckpoint } from './audit-chain.ts'
import type { AuditDatabase } from './database.ts'
import { within } from './schema.ts'

interface RetentionOptions extends AppendOptions {
  /** Keeps the rows of the chain that are not exported yet. Default false. */
  readonly onlyExported?: boolean
}

/** `RETENTION_DAYS` of the audit Worker replaces it. */
export const DEFAULT_RETENTION_DAYS = 90
/** A D1 statement may run 30 s, and it blocks other statements. */
const ROWS_PER_STATEMENT = 5_000
/** For each deletion: a million rows. The next run continues. */
const MAX_STATEMENTS = 200

/** Finds the end of the first run of rows that are all older than a given time. */
const LAST_BEFORE =
  'SELECT seq, hash FROM audit_events WHERE partition = ?1 AND seq < coalesce((' +
  'SELECT seq FROM audit_events WHERE partition = ?1 AND seq IS NOT NULL AND time_ms >= ?2 ' +
  'ORDER BY seq LIMIT 1), 9e15) AND seq <= ?3 ORDER BY seq DESC LIMIT 1'
/** Finds the last row before the first row that is not exported. */
const EXPORTED =
  'SELECT coalesce((SELECT min(first_seq) - 1 FROM audit_exports WHERE partition = ?1 AND ' +
  'done_ms IS NULL), (SELECT max(last_seq) FROM audit_exports WHERE partition = ?1), 0) AS seq'
const ERASING = 'SELECT 1 FROM audit_erasures WHERE done_ms IS NULL LIMIT 1'
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
  const found = db.prepare(LAST_BEFORE).bind(PARTITION, beforeMs, until)
  const last = await within(found.first<ChainPlace>())
  if (last === null) return
  await within(keepCheckpoint(db, await seal('pruned', last, nowMs)).run())
  const place = [PARTITION, last.seq]
  await deleteAll(db, 'audit_events', 'partition = ? AND seq <= ? ORDER BY seq', place)
  await deleteAll(db, 'audit_checkpoints', 'partition = ? AND seq < ?', place)
}

async function deleteAll(
  db: AuditDatabase,
  table: string,
  which: string,
  values: readonly (string | number)[],
) {
  const rows = `SELECT rowid FROM ${table} WHERE ${which} LIMIT ${ROWS_PER_STATEMENT}`
  const statement = db.prepare(`DELETE FROM ${table} WHERE rowid IN (${rows})`).bind(...values)
  for (let run = 0; run < MAX_STATEMENTS; run += 1) {
    const { meta } = await within(statement.run())
    if (meta.changes === 0) return
  }
}
