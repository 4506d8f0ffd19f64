/** Which part of the chain goes into which object of its export, and what is in it. */
import { PARTITION } from '../../audit/chain.ts'
import { type ChainPart, exportName } from '../../audit/chain-export.ts'
import type { ChainRow } from '../../audit/chain-row.ts'
import { within } from './deadline.ts'

/** A row of `audit_exports`. Planned first, so that a run that dies is repeated with the same name. */
export interface ExportRow {
  readonly first_seq: number
  readonly last_seq: number
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly planned_ms: number
  /** Null until the object is there. */
  readonly done_ms: number | null
}

/**
 * Of an object: 1 MB of ordinary rows, 10 MB at the very most, for an isolate has 128 MB. A little
 * more than lie between two checkpoints, so that there is one to end with.
 */
const MAX_ROWS = 1_200
/** An object is due with so many rows, */
const DUE_ROWS = 1_000
/** or after so many milliseconds, if there are any. */
const DUE_MS = 3_600_000
const ROWS_PER_QUERY = 500

const PENDING =
  'SELECT * FROM audit_exports WHERE partition = ? AND done_ms IS NULL ORDER BY first_seq LIMIT 1'
/** `start`: the last row that is in an object, or was deleted; `sealed`: where the next may end. */
const EXTENT =
  'WITH start AS (SELECT max(' +
  'coalesce((SELECT max(last_seq) FROM audit_exports WHERE partition = ?1), 0), ' +
  'coalesce((SELECT min(seq) - 1 FROM audit_events WHERE partition = ?1), 0)) AS seq) ' +
  'SELECT start.seq AS start, ' +
  '(SELECT max(planned_ms) FROM audit_exports WHERE partition = ?1) AS planned_ms, ' +
  "(SELECT max(seq) FROM audit_checkpoints WHERE partition = ?1 AND kind = 'sealed' " +
  'AND seq > start.seq AND seq <= start.seq + ?2) AS sealed, ' +
  "(SELECT max(seq) FROM audit_checkpoints WHERE partition = ?1 AND kind = 'sealed' " +
  'AND seq > start.seq) AS last_sealed FROM start'
const PLAN =
  'INSERT INTO audit_exports (partition, first_seq, last_seq, name, planned_ms) ' +
  'VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'
const DONE =
  'UPDATE audit_exports SET done_ms = ? WHERE partition = ? AND first_seq = ? AND done_ms IS NULL'
const ROWS =
  'SELECT * FROM audit_events WHERE partition = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?'
/** With the one that says why there is nothing before the first row. */
const CHECKPOINTS =
  'SELECT * FROM audit_checkpoints WHERE partition = ?1 AND seq <= ?3 ' +
  "AND (seq >= ?2 OR (seq = ?2 - 1 AND kind = 'pruned')) ORDER BY seq, kind"
const BEHIND =
  'SELECT * FROM audit_exports WHERE partition = ? AND last_seq > ? ORDER BY first_seq LIMIT ?'

interface Extent {
  readonly start: number
  readonly planned_ms: number | null
  readonly sealed: number | null
  readonly last_sealed: number | null
}

/**
 * The part that is to be exported next: one that was planned and not finished, or, where that is
 * due or asked for, a new one. It ends with a checkpoint. Undefined: there is none.
 */
export async function nextPart(
  db: D1Database,
  nowMs: number,
  isAsked: boolean,
): Promise<ExportRow | undefined> {
  const [pending, extents] = await within(
    db.batch([db.prepare(PENDING).bind(PARTITION), db.prepare(EXTENT).bind(PARTITION, MAX_ROWS)]),
  )
  const planned = pending?.results[0] as ExportRow | undefined
  if (planned !== undefined) return planned
  const extent = extents?.results[0] as Extent | undefined
  if (extent === undefined || extent.last_sealed === null) return undefined
  const { start, planned_ms, sealed, last_sealed } = extent
  const isDue = last_sealed - start >= DUE_ROWS || nowMs - (planned_ms ?? 0) >= DUE_MS
  if (!isDue && !isAsked) return undefined
  const part = { first_seq: start + 1, last_seq: sealed ?? start + MAX_ROWS, planned_ms: nowMs }
  const name = exportName(part.first_seq, part.last_seq)
  const values = [PARTITION, part.first_seq, part.last_seq, name, nowMs]
  const [, found] = await within(
    db.batch([db.prepare(PLAN).bind(...values), db.prepare(PENDING).bind(PARTITION)]),
  )
  // Where somebody else was faster, theirs.
  return found?.results[0] as ExportRow | undefined
}

/** What is in D1 of a part, at the most recent. */
export async function readPart(db: D1Database, part: ExportRow): Promise<ChainPart> {
  const { first_seq, last_seq } = part
  const rows: ChainRow[] = []
  for (let after = first_seq - 1; ; ) {
    const page = db.prepare(ROWS).bind(PARTITION, after, last_seq, ROWS_PER_QUERY)
    const { results } = await within(page.all<ChainRow>())
    rows.push(...results)
    if (results.length < ROWS_PER_QUERY) break
    after = Number(results.at(-1)?.seq)
  }
  const asked = db.prepare(CHECKPOINTS).bind(PARTITION, first_seq, last_seq)
  const { results: checkpoints } = await within(asked.all<ChainRow>())
  return { rows, checkpoints }
}

/** Puts on record that an object is there. */
export const partIsExported = (
  db: D1Database,
  { first_seq }: ExportRow,
  nowMs: number,
): Promise<unknown> => within(db.prepare(DONE).bind(nowMs, PARTITION, first_seq).run())

/** Parts, finished or not, that have rows behind `seq`. */
export async function partsBehind(
  db: D1Database,
  seq: number,
  limit: number,
): Promise<readonly ExportRow[]> {
  const asked = db.prepare(BEHIND).bind(PARTITION, seq, limit)
  return (await within(asked.all<ExportRow>())).results
}
