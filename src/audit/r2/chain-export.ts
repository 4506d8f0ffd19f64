/** Exports the chain of the audit trail to R2 in parts. Each row is exported exactly once. */

import { withDeadline } from '../../isolate/timers.ts'
import { ndjsonOf } from '../chain-export.ts'
import { type ExportRow, nextPart, partIsExported, readPart } from '../sql/chain-parts.ts'
import type { TrailDatabase } from '../sql/database.ts'

/** Each takes about nine D1 queries, and an invocation may make 50 on the free plan. */
const MAX_OBJECTS_PER_RUN = 4

/**
 * Exports the parts that are due, at most 4 objects. If a run fails, the next one repeats it: the
 * name of a part is stored before its object is written, and the repeated object has the same
 * content. Concurrent runs write the same objects. `isRequested`: exports new rows even if no object
 * is due. Rejects with the error of D1 or R2, or with `DeadlineExceeded`.
 */
export async function exportChain(
  db: TrailDatabase,
  bucket: ExportBucket,
  nowMs: number,
  isRequested: boolean,
): Promise<void> {
  for (let written = 0; written < MAX_OBJECTS_PER_RUN; written += 1) {
    const part = await nextPart(db, nowMs, isRequested)
    if (part === undefined) return
    await exportPart(db, bucket, part, nowMs)
  }
}

/**
 * Writes the object of a part from the current rows in D1. Returns false if another run wrote it
 * meanwhile. Reads the etag before the rows: a run that overlaps an erasure finds a changed etag,
 * and does not overwrite the erased object.
 */
export async function exportPart(
  db: TrailDatabase,
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

/** An object usually has up to 10 MB; a later run repeats a call that timed out. */
const R2_TIMEOUT_MS = 20_000

/** The part of an R2 binding that is used. */
export interface ExportBucket {
  head(name: string): Promise<{ readonly etag: string } | null>
  get(name: string): Promise<{ readonly etag: string; text(): Promise<string> } | null>
  /** Resolves to null if the object does not meet `onlyIf`. */
  put(name: string, bytes: Uint8Array, options: ExportOptions): Promise<object | null>
}

export interface ExportOptions {
  readonly onlyIf: { readonly etagMatches: string } | { readonly etagDoesNotMatch: string }
  readonly sha256: ArrayBuffer
  readonly httpMetadata: { readonly contentType: string }
}

/** Returns the etag of an object, which changes with its content; undefined if it does not exist. */
export const etagOf = async (bucket: ExportBucket, name: string): Promise<string | undefined> =>
  (await withDeadline(bucket.head(name), R2_TIMEOUT_MS))?.etag

export async function readObject(
  bucket: ExportBucket,
  name: string,
): Promise<{ readonly text: string; readonly etag: string } | undefined> {
  const object = await withDeadline(bucket.get(name), R2_TIMEOUT_MS)
  if (object === null) return undefined
  return { text: await withDeadline(object.text(), R2_TIMEOUT_MS), etag: object.etag }
}

/**
 * Writes an object if its current etag is `etag`; if `etag` is undefined, only if the object does
 * not exist. Otherwise returns false. R2 verifies the SHA-256 and stores it.
 */
export async function replaceObject(
  bucket: ExportBucket,
  name: string,
  text: string,
  etag: string | undefined,
): Promise<boolean> {
  const bytes = new TextEncoder().encode(text)
  const sha256 = await crypto.subtle.digest('SHA-256', bytes)
  const onlyIf = etag === undefined ? { etagDoesNotMatch: '*' } : { etagMatches: etag }
  const httpMetadata = { contentType: 'application/x-ndjson' }
  const put = bucket.put(name, bytes, { onlyIf, sha256, httpMetadata })
  return (await withDeadline(put, R2_TIMEOUT_MS)) !== null
}
