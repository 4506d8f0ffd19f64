/** Plans the parts of the chain for its export, and reads their rows. */

import type { Block } from '../chain.ts'
import { PARTITION } from '../chain.ts'
import { type ChainPart, exportName } from '../chain-export.ts'
import type { ChainRow } from '../chain-row.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import type { AuditDatabase } from './database.ts'
import { within } from './schema.ts'

/** A row of `audit_exports`. Written before the object, so that a repeated run uses its name. */
export interface ExportRow {
  readonly first_seq: number
  readonly last_seq: number
  readonly name: string
  readonly planned_ms: number
  /** Null until the object exists. */
  readonly done_ms: number | null
}

/**
 * Rows in an object, because an isolate has 128 MB: 1 MB of ordinary ones, or 10 MB of the largest
 * without an operator's change. More than the distance between two checkpoints, so that an object
 * can end with one.
 */
const MAX_ROWS = 1_600
const DUE_ROWS = 1_000
/** An object is also due after this interval, if there are new rows. */
const DUE_MS = 3_600_000
const ROWS_PER_QUERY = 500

const PENDING =
  'SELECT * FROM audit_exports WHERE partition = ? AND done_ms IS NULL ORDER BY first_seq LIMIT 1'
/** `start`: the last row that was exported or deleted. `sealed`: where the next object may end. */
const EXTENT =
  'WITH start AS (SELECT coalesce(max(seq), 0) AS seq FROM (' +
  'SELECT max(last_seq) AS seq FROM audit_exports WHERE partition = ?1 UNION ALL ' +
  // Retention deletes from the begin of the chain, so the lowest place of both is the begin.
  'SELECT min(seq) - 1 FROM (SELECT min(seq) AS seq FROM audit_events WHERE partition = ?1 UNION ALL ' +
  'SELECT min(first_seq) FROM audit_blocks) AS begins) AS ends) ' +
  'SELECT start.seq AS start, ' +
  '(SELECT max(planned_ms) FROM audit_exports WHERE partition = ?1) AS planned_ms, ' +
  "(SELECT max(seq) FROM audit_checkpoints WHERE partition = ?1 AND kind = 'sealed' " +
  'AND seq > start.seq AND seq <= start.seq + ?2) AS sealed, ' +
  "(SELECT max(seq) FROM audit_checkpoints WHERE partition = ?1 AND kind = 'sealed' " +
  'AND seq > start.seq) AS last_sealed, ' +
  // An object has whole blocks.
  '(SELECT last_seq FROM audit_blocks WHERE first_seq <= start.seq + ?2 ' +
  'ORDER BY first_seq DESC LIMIT 1) AS block FROM start'
const PLAN =
  'INSERT INTO audit_exports (partition, first_seq, last_seq, name, planned_ms) ' +
  'VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'
const DONE =
  'UPDATE audit_exports SET done_ms = ? WHERE partition = ? AND first_seq = ? AND done_ms IS NULL'
const ROWS =
  'SELECT * FROM audit_events WHERE partition = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?'
/** Includes the checkpoint that explains why no row precedes the first one. */
const CHECKPOINTS =
  'SELECT * FROM audit_checkpoints WHERE partition = ?1 AND seq <= ?3 ' +
  "AND (seq >= ?2 OR (seq = ?2 - 1 AND kind = 'pruned')) ORDER BY seq, kind"
const BLOCKS =
  `SELECT ${BLOCK_COLUMNS} FROM audit_blocks WHERE first_seq > ? AND first_seq <= ? ` +
  'ORDER BY first_seq LIMIT ?'
const BLOCKS_PER_QUERY = 20
const BEHIND =
  'SELECT * FROM audit_exports WHERE partition = ? AND last_seq > ? ORDER BY first_seq LIMIT ?'

interface Extent {
  readonly start: number
  readonly planned_ms: number | null
  readonly sealed: number | null
  readonly last_sealed: number | null
  /** The end of the block that contains the last row that fits, or of one before. */
  readonly block: number | null
}

/**
 * Returns a part that was planned and not finished, or a new part if it is due or requested. A new
 * part ends with a checkpoint if one is near enough.
 */
export async function nextPart(
  db: AuditDatabase,
  nowMs: number,
  isRequested: boolean,
): Promise<ExportRow | undefined> {
  const [pending, extents] = await within(
    db.batch([db.prepare(PENDING).bind(PARTITION), db.prepare(EXTENT).bind(PARTITION, MAX_ROWS)]),
  )
  const planned = pending?.results[0] as ExportRow | undefined
  if (planned !== undefined) return planned
  const extent = extents?.results[0] as Extent | undefined
  if (extent === undefined || extent.last_sealed === null) return undefined
  const { start, planned_ms, sealed, last_sealed, block } = extent
  const isDue = last_sealed - start >= DUE_ROWS || nowMs - (planned_ms ?? 0) >= DUE_MS
  if (!isDue && !isRequested) return undefined
  const first = start + 1
  const last = sealed ?? Math.max(start + MAX_ROWS, block ?? 0)
  const values = [PARTITION, first, last, exportName(first, last), nowMs]
  const [, found] = await within(
    db.batch([db.prepare(PLAN).bind(...values), db.prepare(PENDING).bind(PARTITION)]),
  )
  // If another run planned a part first, returns that part.
  return found?.results[0] as ExportRow | undefined
}

export async function readPart(db: AuditDatabase, part: ExportRow): Promise<ChainPart> {
  const { first_seq, last_seq } = part
  const rows: ChainRow[] = []
  for (let after = first_seq - 1; ; ) {
    const page = db.prepare(ROWS).bind(PARTITION, after, last_seq, ROWS_PER_QUERY)
    const { results } = await within(page.all<ChainRow>())
    rows.push(...results)
    if (results.length < ROWS_PER_QUERY) break
    after = Number(results.at(-1)?.seq)
  }
  const blocks: Block[] = []
  for (let after = first_seq - 1; ; ) {
    const page = db.prepare(BLOCKS).bind(after, last_seq, BLOCKS_PER_QUERY)
    const { results } = await within(page.all<BlockRow>())
    for (const row of results) blocks.push(await blockOf(db, row))
    if (results.length < BLOCKS_PER_QUERY) break
    after = results.at(-1)?.first_seq ?? after
  }
  const result = db.prepare(CHECKPOINTS).bind(PARTITION, first_seq, last_seq)
  const { results: checkpoints } = await within(result.all<ChainRow>())
  return { rows, blocks, checkpoints }
}

export async function partIsExported(db: AuditDatabase, part: ExportRow, nowMs: number) {
  await within(db.prepare(DONE).bind(nowMs, PARTITION, part.first_seq).run())
}

/** Returns the parts, finished or not, that have rows after `seq`. */
export async function partsBehind(
  db: AuditDatabase,
  seq: number,
  limit: number,
): Promise<readonly ExportRow[]> {
  const result = db.prepare(BEHIND).bind(PARTITION, seq, limit)
  return (await within(result.all<ExportRow>())).results
}
