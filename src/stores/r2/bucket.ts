/** An object that is written only as long as nobody else has written it. */
import { withDeadline } from '../../timers.ts'

/** An object has up to 10 MB; what R2 has not taken or given by then is tried again later. */
export const R2_TIMEOUT_MS = 20_000

/** What is used of an R2 bucket. */
export type ExportBucket = Pick<R2Bucket, 'head' | 'get' | 'put'>

export interface StoredObject {
  readonly text: string
  readonly etag: string
}

/** What tells one content of an object from another; undefined: there is no such object. */
export const etagOf = async (bucket: ExportBucket, name: string): Promise<string | undefined> =>
  (await withDeadline(bucket.head(name), R2_TIMEOUT_MS))?.etag

/** The whole object, or undefined. */
export async function readObject(
  bucket: ExportBucket,
  name: string,
): Promise<StoredObject | undefined> {
  const object = await withDeadline(bucket.get(name), R2_TIMEOUT_MS)
  if (object === null) return undefined
  return { text: await withDeadline(object.text(), R2_TIMEOUT_MS), etag: object.etag }
}

/**
 * Writes an object in the place of that with this `etag`, or of none. R2 compares the SHA-256 and
 * keeps it. False: somebody else has written meanwhile, and nothing was.
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
