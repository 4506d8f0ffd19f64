/** Erasing somebody from the exported chain: objects are rewritten, with the same commitments. */
import { ndjsonOf, partOf } from '../../audit/chain-export.ts'
import type { ChainRow } from '../../audit/chain-row.ts'
import { isAbout } from '../../audit/erasure.ts'
import type { AuditChange } from '../../audit/event.ts'
import { CALLER, CHANGE, erased } from '../../audit/personal.ts'
import { Misconfigured } from '../../errors.ts'
import { type ExportRow, partsBehind } from '../d1/chain-parts.ts'
import { within } from '../d1/deadline.ts'
import type { ErasureRow } from '../d1/erasure-orders.ts'
import { type ExportBucket, readObject, replaceObject } from './bucket.ts'
import { exportPart } from './chain-export.ts'

/** Objects a run. */
const MAX_OBJECTS = 10
/** Somebody else may write the same object at the same moment, but not all day. */
const MAX_ATTEMPTS = 3

// Whoever does the same at the same moment counts it once.
const PROGRESS =
  'UPDATE audit_erasures SET exported_seq = ?1, rows = rows + ?2 ' +
  'WHERE id = ?3 AND exported_seq < ?1 AND done_ms IS NULL'

/**
 * Erases somebody from the objects that there are, in their order, at most 10. Comes after D1 was
 * done, so that whatever is exported from now on is without them. False: there are more. Rejects with
 * what D1 or R2 said, or with `Misconfigured`.
 */
export async function eraseExported(
  db: D1Database,
  bucket: ExportBucket | undefined,
  erasure: ErasureRow,
  nowMs: number,
): Promise<boolean> {
  const parts = await partsBehind(db, erasure.exported_seq, MAX_OBJECTS + 1)
  if (bucket === undefined && parts.length > 0)
    throw new Misconfigured('The audit Worker', [
      'AUDIT_EXPORT: is missing, and there is an export',
    ])
  if (bucket === undefined) return true
  for (const part of parts.slice(0, MAX_OBJECTS)) {
    const rows = await erasePart(db, bucket, part, erasure, nowMs)
    await within(db.prepare(PROGRESS).bind(part.last_seq, rows, erasure.id).run())
  }
  return parts.length <= MAX_OBJECTS
}

/** Returns how many rows of the object are erased by this, and are in D1 no more. */
async function erasePart(
  db: D1Database,
  bucket: ExportBucket,
  part: ExportRow,
  erasure: ErasureRow,
  nowMs: number,
): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (part.done_ms === null) {
      // Whoever is about to write it has read the rows before they were erased.
      if (await exportPart(db, bucket, part, nowMs)) return 0
      continue
    }
    const object = await readObject(bucket, part.name)
    // Somebody has deleted it, and everybody in it with it.
    if (object === undefined) return 0
    const before = partOf(object.text)
    const rows = before.rows.map((row) => without(row, erasure))
    const isChanged = rows.some((row, index) => row !== before.rows[index])
    if (isChanged) {
      const text = ndjsonOf({ ...before, rows })
      if (!(await replaceObject(bucket, part.name, text, object.etag))) continue
    }
    const first = erasure.first_seq ?? Number.POSITIVE_INFINITY
    return rows.filter((row) => row.erasure === erasure.id && Number(row.seq) < first).length
  }
  throw new Error(`${part.name} is written by somebody else all the time`)
}

function without(row: ChainRow, { id, issuer, subject, ordered_ms }: ErasureRow): ChainRow {
  if (subject === null || Number(row.time_ms) > ordered_ms) return row
  const isTheirs = row.subject === subject && row.issuer === issuer
  const left = isTheirs ? erased(row, CALLER, id) : row
  return isAbout(changeOf(row.change), subject) ? erased(left, CHANGE, id) : left
}

function changeOf(text: unknown): AuditChange {
  try {
    const { action, target } = JSON.parse(String(text)) as Record<string, unknown>
    return { action: String(action), target: String(target) }
  } catch {
    return { action: '', target: '' }
  }
}
