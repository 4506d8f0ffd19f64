/** Plans the parts of the chain for its export, and reads their rows. */

import type { Block } from '../chain.ts'
import { PARTITION } from '../chain.ts'
import { type ChainPart, exportName } from '../chain-export.ts'
import type { ChainRow } from '../chain-row.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import { rowsOf, type TrailDatabase } from './database.ts'
import { within } from './schema.ts'
import { type Sql, sql } from './statement.ts'

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

const BLOCKS_PER_QUERY = 20

const PENDING = sql`SELECT * FROM audit_exports WHERE partition = ${PARTITION} AND done_ms IS NULL
  ORDER BY first_seq LIMIT 1`
/**
 * `start`: the last row that was exported or deleted. Retention deletes from the begin of the chain, so the lowest
 * place of rows and blocks is the begin. `sealed`: where the next object may end. An object has whole blocks.
 */
const EXTENT = sql`WITH start AS (SELECT coalesce(max(seq), 0) AS seq FROM (
    SELECT max(last_seq) AS seq FROM audit_exports WHERE partition = ${PARTITION} UNION ALL
    SELECT min(seq) - 1 FROM (
      SELECT min(seq) AS seq FROM audit_events WHERE partition = ${PARTITION} UNION ALL
      SELECT min(first_seq) FROM audit_blocks) AS begins) AS ends)
  SELECT start.seq AS start,
    (SELECT max(planned_ms) FROM audit_exports WHERE partition = ${PARTITION}) AS planned_ms,
    (SELECT max(seq) FROM audit_checkpoints WHERE partition = ${PARTITION} AND kind = 'sealed'
      AND seq > start.seq AND seq <= start.seq + ${MAX_ROWS}) AS sealed,
    (SELECT max(seq) FROM audit_checkpoints WHERE partition = ${PARTITION} AND kind = 'sealed'
      AND seq > start.seq) AS last_sealed,
    (SELECT last_seq FROM audit_blocks WHERE first_seq <= start.seq + ${MAX_ROWS}
      ORDER BY first_seq DESC LIMIT 1) AS block
  FROM start`

const rowsBetween = (after: number, last: number): Sql =>
  sql`SELECT * FROM audit_events WHERE partition = ${PARTITION} AND seq > ${after} AND seq <= ${last}
    ORDER BY seq LIMIT ${ROWS_PER_QUERY}`
const blocksBetween = (after: number, last: number): Sql =>
  sql`SELECT ${BLOCK_COLUMNS} FROM audit_blocks WHERE first_seq > ${after} AND first_seq <= ${last}
    ORDER BY first_seq LIMIT ${BLOCKS_PER_QUERY}`
/** Includes the checkpoint that explains why no row precedes the first one. */
const checkpointsBetween = (first: number, last: number): Sql =>
  sql`SELECT * FROM audit_checkpoints WHERE partition = ${PARTITION} AND seq <= ${last}
    AND (seq >= ${first} OR (seq = ${first - 1} AND kind = 'pruned')) ORDER BY seq, kind`

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
  db: TrailDatabase,
  nowMs: number,
  isRequested: boolean,
): Promise<ExportRow | undefined> {
  const [pending, extents] = await within(db.run([PENDING, EXTENT]))
  const planned = pending?.rows[0] as ExportRow | undefined
  if (planned !== undefined) return planned
  const extent = extents?.rows[0] as Extent | undefined
  if (extent === undefined || extent.last_sealed === null) return undefined
  const { start, planned_ms, sealed, last_sealed, block } = extent
  const isDue = last_sealed - start >= DUE_ROWS || nowMs - (planned_ms ?? 0) >= DUE_MS
  if (!isDue && !isRequested) return undefined
  const first = start + 1
  const last = sealed ?? Math.max(start + MAX_ROWS, block ?? 0)
  const plan = sql`INSERT INTO audit_exports (partition, first_seq, last_seq, name, planned_ms)
    VALUES (${PARTITION}, ${first}, ${last}, ${exportName(first, last)}, ${nowMs}) ON CONFLICT DO NOTHING`
  const [, found] = await within(db.run([plan, PENDING]))
  // If another run planned a part first, returns that part.
  return found?.rows[0] as ExportRow | undefined
}

export async function readPart(db: TrailDatabase, part: ExportRow): Promise<ChainPart> {
  const { first_seq, last_seq } = part
  const rows: ChainRow[] = []
  for (let after = first_seq - 1; ; ) {
    const page = await within(rowsOf<ChainRow>(db, rowsBetween(after, last_seq)))
    rows.push(...page)
    if (page.length < ROWS_PER_QUERY) break
    after = Number(page.at(-1)?.seq)
  }
  const blocks: Block[] = []
  for (let after = first_seq - 1; ; ) {
    const page = await within(rowsOf<BlockRow>(db, blocksBetween(after, last_seq)))
    for (const row of page) blocks.push(await blockOf(db, row))
    if (page.length < BLOCKS_PER_QUERY) break
    after = page.at(-1)?.first_seq ?? after
  }
  const checkpoints = await within(rowsOf<ChainRow>(db, checkpointsBetween(first_seq, last_seq)))
  return { rows, blocks, checkpoints }
}

export async function partIsExported(db: TrailDatabase, part: ExportRow, nowMs: number) {
  const done = sql`UPDATE audit_exports SET done_ms = ${nowMs}
    WHERE partition = ${PARTITION} AND first_seq = ${part.first_seq} AND done_ms IS NULL`
  await within(db.run([done]))
}

/** Returns the parts, finished or not, that have rows after `seq`. */
export async function partsBehind(
  db: TrailDatabase,
  seq: number,
  limit: number,
): Promise<readonly ExportRow[]> {
  const behind = sql`SELECT * FROM audit_exports WHERE partition = ${PARTITION} AND last_seq > ${seq}
    ORDER BY first_seq LIMIT ${limit}`
  return within(rowsOf<ExportRow>(db, behind))
}
