/** Exports the chain of the audit trail to R2, part by part: none twice, and none left out. */
import { ndjsonOf } from '../../audit/chain-export.ts'
import { type ExportRow, nextPart, partIsExported, readPart } from '../d1/chain-parts.ts'
import { type ExportBucket, etagOf, replaceObject } from './bucket.ts'

/** Objects a run: about nine D1 queries each, and an invocation may make 50 on the free plan. */
const MAX_OBJECTS = 4

export interface ExportOptions {
  readonly db: D1Database
  readonly bucket: ExportBucket
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Also what is not due by itself. */
  readonly isAsked?: boolean
}

/**
 * Exports what is due, at most 4 objects. A run that dies is repeated by the next: a part has its name
 * before it is written, and its object is replaced by the same. Runs beside each other write the
 * same objects. Rejects with what D1 or R2 said, or `DeadlineExceeded`; nothing is lost by that.
 */
export async function exportChain({ db, bucket, nowMs, isAsked = false }: ExportOptions) {
  for (let written = 0; written < MAX_OBJECTS; written += 1) {
    const part = await nextPart(db, nowMs, isAsked)
    if (part === undefined) return
    await exportPart(db, bucket, part, nowMs)
  }
}

/**
 * Writes the object of a part, from what D1 has now. The object is looked at before the rows are
 * read: whoever was slower than an erasure then finds another one, and writes nothing. False:
 * somebody else has written it meanwhile.
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
