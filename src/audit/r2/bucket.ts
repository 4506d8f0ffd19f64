/** Reads and conditionally writes objects in R2. */
import { withDeadline } from '../../isolate/timers.ts'

/**
 * Timeout in milliseconds. An object usually has up to 10 MB; a later run repeats a call that timed
 * out.
 */
export const R2_TIMEOUT_MS = 20_000

/** The part of an R2 bucket that is used. */
export type ExportBucket = Pick<R2Bucket, 'head' | 'get' | 'put'>

export interface StoredObject {
  readonly text: string
  readonly etag: string
}

/**
 * Returns the etag of an object, which changes with its content; undefined if the object does not
 * exist.
 */
export const etagOf = async (bucket: ExportBucket, name: string): Promise<string | undefined> =>
  (await withDeadline(bucket.head(name), R2_TIMEOUT_MS))?.etag

/** Reads an object; undefined if it does not exist. */
export async function readObject(
  bucket: ExportBucket,
  name: string,
): Promise<StoredObject | undefined> {
  const object = await withDeadline(bucket.get(name), R2_TIMEOUT_MS)
  if (object === null) return undefined
  return { text: await withDeadline(object.text(), R2_TIMEOUT_MS), etag: object.etag }
}

/**
 * Writes an object if its current etag is `etag`; if `etag` is undefined, only if the object does
 * not exist. R2 verifies the SHA-256 and stores it. Returns false, without writing, if another
 * writer changed the object meanwhile.
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
  return (await withDeadline<R2Object | null>(put, R2_TIMEOUT_MS)) !== null
}
