/** Downloads a key set over HTTP, with limits on time and size. */
import { type Fault, Unavailable } from '../errors.ts'
import { BodyRefused, boundedText } from '../http/bounded-text.ts'

/** A set of 128 RSA keys with certificates fits several times. */
export const DEFAULT_MAX_KEY_SET_BYTES = 262_144
/** A request may wait for the download. */
export const DEFAULT_KEY_SET_TIMEOUT_MS = 2_000

export interface DownloadLimits {
  readonly timeoutMs: number
  readonly maxBytes: number
}

export interface Download {
  readonly text: string
  /** `max-age` of the response (RFC 9111 section 5.2.2.1), if present. */
  readonly maxAgeSeconds: number | undefined
}

/**
 * Downloads a document. Throws `Unavailable` (`key_set`) unless the response has the status 200, is
 * complete within `timeoutMs`, and is valid UTF-8. After decompression it must have at most
 * `maxBytes` bytes, whatever its `Content-Length` says. A redirect is a failure: only the
 * configuration decides where the keys are. HTTP caches on the way are bypassed, because the key
 * set has its own expiry. Does NOT parse the document.
 */
export async function download(uri: string, limits: DownloadLimits): Promise<Download> {
  const signal = AbortSignal.timeout(limits.timeoutMs)
  try {
    const response = await fetch(uri, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'manual',
      cache: 'no-store',
      signal,
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new Unavailable('key_set', 'refused')
    }
    const text = await boundedText(response.body, limits.maxBytes)
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
