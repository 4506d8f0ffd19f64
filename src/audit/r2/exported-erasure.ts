/** Erases a person from the exported chain: rewrites the objects and keeps their commitments. */

import { Misconfigured } from '../../errors.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { eraseLines } from '../blocks/erasing.ts'
import type { Block } from '../chain.ts'
import { ndjsonOf, partOf } from '../chain-export.ts'
import type { ChainRow } from '../chain-row.ts'
import { changeOf, isAbout } from '../erasure.ts'
import { CALLER, CHANGE, erased } from '../personal.ts'
import { type ExportRow, partsBehind } from '../sql/chain-parts.ts'
import type { TrailDatabase } from '../sql/database.ts'
import type { ErasureRow } from '../sql/erasure-orders.ts'
import { within } from '../sql/schema.ts'
import { sql } from '../sql/statement.ts'
import { type ExportBucket, exportPart, readObject, replaceObject } from './chain-export.ts'

const MAX_OBJECTS_PER_RUN = 10
/** For an object that another writer changes at the same time. */
const MAX_ATTEMPTS = 3

/**
 * Erases a person from the existing objects in order, at most 10. Runs after the erasure in D1, so
 * that later exports do not contain the data. Returns false if objects remain for the next run.
 * Rejects with the error of D1 or R2, or with `Misconfigured`.
 */
export async function eraseExported(
  db: TrailDatabase,
  bucket: ExportBucket | undefined,
  erasure: ErasureRow,
  nowMs: number,
): Promise<boolean> {
  const parts = await partsBehind(db, erasure.exported_seq, MAX_OBJECTS_PER_RUN + 1)
  if (bucket === undefined && parts.length > 0)
    throw new Misconfigured('The audit Worker', [
      mistakeAt('missing', ['AUDIT_EXPORT'], 'is missing, and there is an export'),
    ])
  if (bucket === undefined) return true
  for (const part of parts.slice(0, MAX_OBJECTS_PER_RUN)) {
    const rows = await erasePart(db, bucket, part, erasure, nowMs)
    // The condition on `exported_seq` counts an object only once if two runs overlap.
    const progress = sql`UPDATE audit_erasures SET exported_seq = ${part.last_seq}, rows = rows + ${rows}
      WHERE id = ${erasure.id} AND exported_seq < ${part.last_seq} AND done_ms IS NULL`
    await within(db.run([progress]))
  }
  return parts.length <= MAX_OBJECTS_PER_RUN
}

/** Returns the number of rows in the object that this erasure covers and that D1 no longer has. */
async function erasePart(
  db: TrailDatabase,
  bucket: ExportBucket,
  part: ExportRow,
  erasure: ErasureRow,
  nowMs: number,
): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (part.done_ms === null) {
      // A concurrent export may have read the rows before their erasure, so the object is written
      // here.
      if (await exportPart(db, bucket, part, nowMs)) return 0
      continue
    }
    const object = await readObject(bucket, part.name)
    // The object was deleted, so it contains no data to erase.
    if (object === undefined) return 0
    const before = partOf(object.text)
    const rows = before.rows.map((row) => without(row, erasure))
    const blocks: Block[] = []
    const first = erasure.first_seq ?? Number.POSITIVE_INFINITY
    let isChanged = rows.some((row, index) => row !== before.rows[index])
    let inBlocks = 0
    for (const block of before.blocks) {
      const { lines, erased: count, isChanged: isOther } = await eraseLines(block.lines, erasure)
      blocks.push({ ...block, lines })
      isChanged ||= isOther
      if (block.first_seq < first) inBlocks += count
    }
    if (isChanged) {
      const text = ndjsonOf({ ...before, rows, blocks })
      if (!(await replaceObject(bucket, part.name, text, object.etag))) continue
    }
    const inRows = rows.filter((row) => row.erasure === erasure.id && Number(row.seq) < first)
    return inRows.length + inBlocks
  }
  throw new Error(`${part.name} is written by somebody else all the time`)
}

function without(row: ChainRow, { id, issuer, subject, ordered_ms, tenant }: ErasureRow): ChainRow {
  if (subject === null || Number(row.time_ms) > ordered_ms) return row
  if (tenant != null && row.tenant !== tenant) return row
  const isTheirs = row.subject === subject && row.issuer === issuer
  const left = isTheirs ? erased(row, CALLER, id) : row
  return isAbout(changeOf(row.change), subject) ? erased(left, CHANGE, id) : left
}
