/** Downloads the documents that an issuer publishes: its key set and its metadata. */
import { Unavailable } from '../errors.ts'
import { BodyRefused, boundedText } from '../http/bounded-text.ts'
import type { Fault } from '../problems/reasons.ts'

export interface DownloadOptions {
  /** The value of the `Accept` header. */
  readonly accept: string
  /** Counted after decompression. */
  readonly maxBytes: number
  /** The deadline of the download, including its body. */
  readonly signal: AbortSignal
}

/**
 * Downloads a document. A redirect is a failure: only the configuration and the issuer's metadata
 * decide where the keys are. HTTP caches on the way are bypassed, because the key set has its own
 * expiry. Returns the response's `max-age` (RFC 9111 section 5.2.2.1) as well. Throws `Unavailable`.
 */
export async function download(uri: string, { accept, maxBytes, signal }: DownloadOptions) {
  try {
    const response = await fetch(uri, {
      headers: { accept },
      redirect: 'manual',
      cache: 'no-store',
      signal,
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new Unavailable('key_set', 'refused')
    }
    const text = await boundedText(response.body, maxBytes)
    return { text, maxAgeSeconds: maxAgeOf(response.headers.get('cache-control')) }
  } catch (cause) {
    if (cause instanceof Unavailable) throw cause
    throw new Unavailable('key_set', faultOf(cause, signal), { cause })
  }
}

function maxAgeOf(cacheControl: string | null): number | undefined {
  const [, seconds] = /(?:^|[\s,])max-age="?(\d{1,10})\b/i.exec(cacheControl ?? '') ?? []
  return seconds === undefined ? undefined : Number(seconds)
}

function faultOf(cause: unknown, signal: AbortSignal): Fault {
  if (cause instanceof BodyRefused) return 'malformed'
  return signal.aborted || (cause instanceof Error && cause.name === 'TimeoutError')
    ? 'timeout'
    : 'unreachable'
}
