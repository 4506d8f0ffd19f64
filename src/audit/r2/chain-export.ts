/** Exports the chain of the audit trail to R2 in parts. Each row is exported exactly once. */
import { ndjsonOf } from '../chain-export.ts'
import { type ExportRow, nextPart, partIsExported, readPart } from '../d1/chain-parts.ts'
import { type ExportBucket, etagOf, replaceObject } from './bucket.ts'

/**
 * Maximum number of objects in one run. Each takes about nine D1 queries, and an invocation may
 * make 50 on the free plan.
 */
const MAX_OBJECTS = 4

export interface ExportOptions {
  readonly db: D1Database
  readonly bucket: ExportBucket
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Exports new rows even if no object is due. Default false. */
  readonly isAsked?: boolean
}

/**
 * Exports the parts that are due, at most 4 objects. If a run fails, the next one repeats it. The
 * name of a part is stored before its object is written, and the repeated object has the same
 * content. Concurrent runs write the same objects. Rejects with the error of D1 or R2, or with
 * `DeadlineExceeded`; no rows are lost.
 */
export async function exportChain({ db, bucket, nowMs, isAsked = false }: ExportOptions) {
  for (let written = 0; written < MAX_OBJECTS; written += 1) {
    const part = await nextPart(db, nowMs, isAsked)
    if (part === undefined) return
    await exportPart(db, bucket, part, nowMs)
  }
}

/**
 * Writes the object of a part from the current rows in D1. Reads the etag of the object before the
 * rows. So a run that overlaps an erasure finds a changed etag and does not overwrite the erased
 * object. Returns false if another run wrote the object meanwhile.
 */
export async function exportPart(
  db: D1Database,
  bucket: ExportBucket,
  part: ExportRow,
  nowMs: number,
): Promise<boolean> {
  const etag = await etagOf(bucket, part.name)
  const text = ndjsonOf(await readPart(db, part))
  if (!(await replaceObject(bucket, part.name, text, etag))) return false
  await partIsExported(db, part, nowMs)
  return true
}
