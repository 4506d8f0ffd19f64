/** Calls an issuer, and downloads the documents that it publishes: its key set and its metadata. */
import { Unavailable } from '../../errors.ts'
import { BodyRefused, boundedText } from '../../http/bounded-text.ts'
import type { Dependency, Fault } from '../../problems/reasons.ts'

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
 * decide where the keys are. Returns the response's `max-age` (RFC 9111 section 5.2.2.1) as well.
 * Throws `Unavailable`.
 */
export async function download(uri: string, { accept, ...options }: DownloadOptions) {
  const { status, headers, text } = await call(
    uri,
    { headers: { accept } },
    {
      dependency: 'key_set',
      ...options,
    },
  )
  if (status !== 200) throw new Unavailable('key_set', 'refused')
  return { text, maxAgeSeconds: maxAgeOf(headers.get('cache-control')) }
}

interface CallOptions extends Omit<DownloadOptions, 'accept'> {
  /** Returns the bodies of responses with a status from 400 to 499 too. Default false. */
  readonly readsRefusals?: boolean
  /** The name of the issuer in a failure. */
  readonly dependency: Dependency
}

/**
 * Sends a request to an issuer. Redirects are not followed, and HTTP caches on the way are bypassed.
 * `text` is the body of a response with status 200, or of a refusal; other bodies are discarded.
 * Throws `Unavailable` if there is no complete response.
 */
export async function call(
  uri: string,
  init: RequestInit,
  { dependency, maxBytes, signal, readsRefusals = false }: CallOptions,
) {
  try {
    const response = await fetch(uri, { ...init, redirect: 'manual', cache: 'no-store', signal })
    const { status, headers, body } = response
    const isRefusal = readsRefusals && status >= 400 && status < 500
    if (status === 200 || isRefusal)
      return { status, headers, text: withoutMark(await boundedText(body, maxBytes)) }
    await body?.cancel()
    return { status, headers, text: '' }
  } catch (cause) {
    throw new Unavailable(dependency, classifyFault(cause, signal), { cause })
  }
}

/** Editors of some systems write a byte order mark. A reader may ignore it (RFC 8259 section 8.1). */
const withoutMark = (text: string): string => text.replace(/^\ufeff/, '')

function maxAgeOf(cacheControl: string | null): number | undefined {
  const [, seconds] = /(?:^|[\s,])max-age="?(\d{1,10})\b/i.exec(cacheControl ?? '') ?? []
  return seconds === undefined ? undefined : Number(seconds)
}

function classifyFault(cause: unknown, signal: AbortSignal): Fault {
  if (cause instanceof BodyRefused) return 'malformed'
  return signal.aborted || (cause instanceof Error && cause.name === 'TimeoutError')
    ? 'timeout'
    : 'unreachable'
}
