import { Unavailable } from '../errors.ts'
import { BodyRefused, boundedText } from '../http/bounded-text.ts'
import { parseStrictJson } from '../http/strict-json.ts'
import { withDeadline } from '../isolate/timers.ts'
import type { Fault } from '../problems/reasons.ts'
import type { Algorithm } from '../validators/jwk.ts'
import { type IgnoredKey, importKeys, type KeyRing } from './key-ring.ts'

/** A valid key set and the time of its download. */
export interface Snapshot {
  /** Never empty. */
  readonly ring: KeyRing
  readonly ignored: readonly IgnoredKey[]
  /** The document as it was published. */
  readonly text: string
  /** Milliseconds since the epoch: when its download began. */
  readonly fetchedAtMs: number
  readonly lifetime: Lifetime
}

export interface KeySetSourceOptions {
  readonly uri: string
  /** Algorithms of the issuer. HS256 is ignored: a published secret is not secret. */
  readonly algorithms: readonly Algorithm[]
  /**
   * The longest time for which a removed key is accepted while the provider responds. Default 300.
   */
  readonly maxAgeSeconds?: number
  /** How long the last good set is used while the provider fails. Default 86,400. */
  readonly maxStaleSeconds?: number
  /** Deadline of one download, including its body. Below the lease of 3 s. Default 2,000. */
  readonly timeoutMs?: number
  /** The largest accepted document. Default 262,144. */
  readonly maxBytes?: number
  /** The shared cache. Default: the Cache API, if available. Null: no shared cache. */
  readonly cache?: KeySetCache | null | undefined
  /** In [0, 1). */
  readonly random?: () => number
}

export interface KeySetSource {
  /**
   * Downloads the set. Throws `Unavailable` unless the provider publishes at least one usable key.
   */
  fetch(previous: Snapshot | undefined, nowMs: number): Promise<Snapshot>
  /** Returns the set from the shared cache, or undefined. Never throws. */
  recall(nowMs: number): Promise<Snapshot | undefined>
  /** Stores a snapshot in the shared cache. Never throws. */
  keep(snapshot: Snapshot): Promise<void>
}

/** `{"keys":[{"x5c":[""]}]}` has a depth of four. Extensions may have some more. */
const MAX_JSON_DEPTH = 8
/** A slower shared cache would save no time. */
const RECALL_TIMEOUT_MS = 250
/** The write happens behind the response. */
const KEEP_TIMEOUT_MS = 2_000
/** The clocks of one data centre differ by less than this. */
const MAX_SKEW_MS = 5_000

export function createKeySetSource({
  uri,
  algorithms,
  maxAgeSeconds = DEFAULT_MAX_AGE_SECONDS,
  maxStaleSeconds = DEFAULT_MAX_STALE_SECONDS,
  timeoutMs = DEFAULT_KEY_SET_TIMEOUT_MS,
  maxBytes = DEFAULT_MAX_KEY_SET_BYTES,
  cache = edgeKeySetCache(),
  random = Math.random,
}: KeySetSourceOptions): KeySetSource {
  const asymmetric = algorithms.filter((algorithm) => algorithm !== 'HS256')

  async function read(text: string): Promise<Pick<Snapshot, 'ring' | 'ignored' | 'text'>> {
    try {
      const imported = await importKeys(
        parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH }),
        asymmetric,
      )
      if (imported !== undefined && imported.ring.size > 0) return { ...imported, text }
    } catch (cause) {
      throw new Unavailable('key_set', 'malformed', { cause })
    }
    throw new Unavailable('key_set', 'malformed')
  }

  return {
    async fetch(previous, nowMs) {
      const { text, maxAgeSeconds: announced } = await download(uri, { timeoutMs, maxBytes })
      // An unchanged document keeps its imported keys. Cached tokens refer to these and stay valid.
      const keys = previous?.text === text ? previous : await read(text)
      const lifetime = lifetimeOf(maxAgeSeconds, announced, random())
      return { text, ring: keys.ring, ignored: keys.ignored, fetchedAtMs: nowMs, lifetime }
    },

    async recall(nowMs) {
      if (!cache) return undefined
      try {
        const stored = await withDeadline(cache.read(uri), RECALL_TIMEOUT_MS)
        if (stored === undefined || stored.text.length > maxBytes) return undefined
        const ageMs = nowMs - stored.fetchedAtMs
        if (!(ageMs >= -MAX_SKEW_MS && ageMs < maxStaleSeconds * 1000)) return undefined
        const lifetime = lifetimeOf(maxAgeSeconds, undefined, random())
        return { ...(await read(stored.text)), fetchedAtMs: stored.fetchedAtMs, lifetime }
      } catch {
        return undefined
      }
    },

    async keep({ text, fetchedAtMs }) {
      try {
        const kept = cache?.write(uri, { text, fetchedAtMs }, maxStaleSeconds)
        if (kept !== undefined) await withDeadline(kept, KEEP_TIMEOUT_MS)
      } catch {
        // The shared cache is optional: the next isolate downloads the set itself.
      }
    },
  }
}

/** A downloaded key set, as text. The reader checks it like a download. */
export interface StoredKeySet {
  readonly text: string
  /** Milliseconds since the epoch: when its download began. */
  readonly fetchedAtMs: number
}

/** Port: a cache that outlives an isolate. It may lose entries, and its content is not trusted. */
export interface KeySetCache {
  read(uri: string): Promise<StoredKeySet | undefined>
  write(uri: string, stored: StoredKeySet, ttlSeconds: number): Promise<void>
}

const FETCHED_AT = 'x-fetched-at'
/** A name that no visitor can request and no origin can serve (RFC 6761 section 6.4). */
const NAMESPACE = 'https://key-sets.portcullis.invalid/'

/**
 * Creates a cache over the Cache API of Workers. Returns undefined on platforms without
 * `caches.default`. Only Workers of the same zone can write there, so an entry is as trustworthy as
 * the zone's own code.
 */
export function edgeKeySetCache(): KeySetCache | undefined {
  const cache = (globalThis as { caches?: { readonly default?: Cache } }).caches?.default
  if (cache === undefined) return undefined
  const keyOf = (uri: string) => `${NAMESPACE}${encodeURIComponent(uri)}`
  return {
    async read(uri) {
      const response = await cache.match(keyOf(uri))
      if (response === undefined) return undefined
      return {
        text: await response.text(),
        fetchedAtMs: Number(response.headers.get(FETCHED_AT) ?? Number.NaN),
      }
    },
    async write(uri, { text, fetchedAtMs }, ttlSeconds) {
      const headers = {
        'cache-control': `max-age=${ttlSeconds}`,
        'content-type': 'application/json',
        [FETCHED_AT]: String(fetchedAtMs),
      }
      await cache.put(keyOf(uri), new Response(text, { headers }))
    },
  }
}

/**
 * The longest time for which a removed key is still accepted while the issuer responds, in seconds.
 * `Cache-Control` may shorten it, but never lengthens it.
 */
export const DEFAULT_MAX_AGE_SECONDS = 300
/**
 * The shortest accepted max-age. It bounds the downloads from a provider that sends `max-age=0`.
 */
export const MIN_MAX_AGE_SECONDS = 60
/** How long the last good set is used while the provider fails. */
export const DEFAULT_MAX_STALE_SECONDS = 86_400
/** The shortest time between two downloads that tokens with unknown keys cause. */
export const DEFAULT_COOL_DOWN_SECONDS = 30
/**
 * A refresh that takes longer counts as dead: its request was cancelled, or its isolate was frozen.
 */
export const LEASE_MS = 3_000

/**
 * The fraction of a set's max-age in which no refresh is needed. The rest is for refreshing in
 * time.
 */
const FRESH_SHARE = 0.7
/** Isolates that started together should not refresh together. */
const FRESH_JITTER = 0.1

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000

export interface Lifetime {
  /** The age from which a refresh starts in the background, in milliseconds. */
  readonly freshMs: number
  /** The age from which a request waits for the refresh, in milliseconds. */
  readonly maxMs: number
}

/**
 * Returns the lifetime of a set. `announcedSeconds` is the provider's `max-age`. `random` is in [0,
 * 1).
 */
export function lifetimeOf(
  maxAgeSeconds: number,
  announcedSeconds: number | undefined,
  random: number,
): Lifetime {
  const announced = Math.max(announcedSeconds ?? maxAgeSeconds, MIN_MAX_AGE_SECONDS)
  const ageMs = Math.min(maxAgeSeconds, announced) * 1000
  // A request that shares another request's refresh uses the old set for at most one lease.
  return { freshMs: ageMs * (FRESH_SHARE + FRESH_JITTER * random), maxMs: ageMs - LEASE_MS }
}

/**
 * Returns the pause after the nth failure in a row, in milliseconds. It doubles up to 30 s, and
 * half of it is random.
 */
export function retryDelayMs(failures: number, random: number): number {
  const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)
  return delayMs * (0.5 + random / 2)
}

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
