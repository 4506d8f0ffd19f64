/** Reads the key set of an issuer: from its URL, and from a cache that isolates share. */
import { Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import { isWithin } from '../../isolate/period.ts'
import { withDeadline } from '../../isolate/timers.ts'
import type { Algorithm } from '../../validators/jwk.ts'
import type { Locator } from './discovery.ts'
import { download } from './document.ts'
import { type IgnoredKey, importKeys, type KeyRing } from './key-ring.ts'

export interface Snapshot {
  /** Never empty. */
  readonly ring: KeyRing
  readonly ignored: readonly IgnoredKey[]
  readonly text: string
  /** Milliseconds since the epoch: when its download began. */
  readonly fetchedAtMs: number
  readonly lifetime: Lifetime
}

export interface Lifetime {
  /** The age from which a refresh starts in the background, in milliseconds. */
  readonly freshMs: number
  /** The age from which a request waits for the refresh, in milliseconds. */
  readonly maxMs: number
}

export interface KeySetSourceOptions {
  /** The URL of the key set. With `locator`: a name for it, for reports and the shared cache. */
  readonly uri: string
  /** Finds the URL of the key set. Default: `uri` is the URL. */
  readonly locator?: Locator | undefined
  /** Algorithms of the issuer. HS256 is ignored: a published secret is not secret. */
  readonly algorithms: readonly Algorithm[]
  /** Deadline of finding and downloading the set. Must be below `LEASE_MS`. Default 2,000. */
  readonly timeoutMs?: number
  /** The shared cache. Default: the Cache API, if available. Null: no shared cache. */
  readonly cache?: KeySetCache | null | undefined
  /** In [0, 1). */
  readonly random?: () => number
}

/** How long the last good set is used while the provider fails. */
export const MAX_STALE_MS = 86_400_000
/** A longer refresh counts as dead: its request was cancelled, or its isolate was frozen. */
export const LEASE_MS = 3_000
export const DEFAULT_KEY_SET_TIMEOUT_MS = 2_000
/** A set of 128 RSA keys with certificates fits several times. */
export const MAX_KEY_SET_BYTES = 262_144
const ACCEPT = 'application/jwk-set+json, application/json'
/** `{"keys":[{"x5c":[""]}]}` has a depth of four. Extensions may have some more. */
const MAX_JSON_DEPTH = 8
/** A slower shared cache would save no time. */
const READ_TIMEOUT_MS = 250
/** The write happens behind the response. */
const WRITE_TIMEOUT_MS = 2_000

export function createKeySetSource({
  uri,
  locator,
  algorithms,
  timeoutMs = DEFAULT_KEY_SET_TIMEOUT_MS,
  cache = edgeKeySetCache(),
  random = Math.random,
}: KeySetSourceOptions) {
  const asymmetric = algorithms.filter((algorithm) => algorithm !== 'HS256')
  // No URL of a key set equals the key of a set that is found in metadata.
  const cacheKey = locator === undefined ? uri : `discovered ${uri}`

  async function read(text: string): Promise<Pick<Snapshot, 'ring' | 'ignored'>> {
    try {
      const json = parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH })
      const imported = await importKeys(json, asymmetric)
      if (imported !== undefined && imported.ring.size > 0) return imported
    } catch (cause) {
      throw new Unavailable('key_set', 'malformed', { cause })
    }
    throw new Unavailable('key_set', 'malformed')
  }

  return {
    /** Downloads the set. Throws `Unavailable` unless it contains at least one usable key. */
    async fetch(previous: Snapshot | undefined, nowMs: number): Promise<Snapshot> {
      const signal = AbortSignal.timeout(timeoutMs)
      const location = (await locator?.locate(nowMs, timeoutMs)) ?? uri
      const options = { accept: ACCEPT, maxBytes: MAX_KEY_SET_BYTES, signal }
      const { text, maxAgeSeconds } = await download(location, options)
      // An unchanged document keeps its imported keys. Cached tokens refer to these and stay valid.
      const { ring, ignored } = previous?.text === text ? previous : await read(text)
      const lifetime = boundLifetime(maxAgeSeconds, random())
      return { text, ring, ignored, fetchedAtMs: nowMs, lifetime }
    },

    /** Returns the set from the shared cache, or undefined. Never throws. */
    async readCache(nowMs: number): Promise<Snapshot | undefined> {
      if (!cache) return undefined
      try {
        const stored = await withDeadline(cache.read(cacheKey), READ_TIMEOUT_MS)
        if (stored === undefined || stored.text.length > MAX_KEY_SET_BYTES) return undefined
        // The clocks of one data centre differ by less than the steps that are noticed.
        if (!isWithin(stored.fetchedAtMs, MAX_STALE_MS, nowMs)) return undefined
        const { text } = stored
        // Of a writer with a fast clock. A set of the future would count as newer than the next one.
        const fetchedAtMs = Math.min(stored.fetchedAtMs, nowMs)
        const lifetime = boundLifetime(undefined, random())
        return { ...(await read(text)), text, fetchedAtMs, lifetime }
      } catch {
        return undefined
      }
    },

    /** Writes a set to the shared cache. Never throws. */
    async writeCache({ text, fetchedAtMs }: Snapshot): Promise<void> {
      try {
        const kept = cache?.write(cacheKey, { text, fetchedAtMs }, MAX_STALE_MS / 1000)
        if (kept !== undefined) await withDeadline(kept, WRITE_TIMEOUT_MS)
      } catch {
        // The shared cache is optional: the next isolate downloads the set itself.
      }
    },
  }
}

/**
 * The longest time for which a removed key is still accepted while the issuer responds, in seconds.
 * `Cache-Control` may shorten it, but never lengthens it.
 */
const MAX_AGE_SECONDS = 300
/** The shortest accepted max-age. It bounds the downloads if a provider sends `max-age=0`. */
const MIN_MAX_AGE_SECONDS = 60
/** The fraction of the max-age without a refresh. The rest is for refreshing in time. */
const FRESH_SHARE = 0.7
/** Isolates that started together should not refresh together. */
const FRESH_JITTER = 0.1

function boundLifetime(announcedSeconds: number | undefined, random: number): Lifetime {
  const announced = Math.max(announcedSeconds ?? MAX_AGE_SECONDS, MIN_MAX_AGE_SECONDS)
  const ageMs = Math.min(MAX_AGE_SECONDS, announced) * 1000
  // A request that shares another request's refresh uses the old set for at most one lease.
  return { freshMs: ageMs * (FRESH_SHARE + FRESH_JITTER * random), maxMs: ageMs - LEASE_MS }
}

export type StoredKeySet = Pick<Snapshot, 'text' | 'fetchedAtMs'>

/** Port: a cache that outlives an isolate. It may lose entries, and its content is not trusted. */
export interface KeySetCache {
  read(key: string): Promise<StoredKeySet | undefined>
  write(key: string, stored: StoredKeySet, ttlSeconds: number): Promise<void>
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
  const keyOf = (key: string) => `${NAMESPACE}${encodeURIComponent(key)}`
  return {
    async read(key) {
      const response = await cache.match(keyOf(key))
      if (response === undefined) return undefined
      const fetchedAtMs = Number(response.headers.get(FETCHED_AT) ?? Number.NaN)
      return { text: await response.text(), fetchedAtMs }
    },
    async write(key, { text, fetchedAtMs }, ttlSeconds) {
      const headers = {
        'cache-control': `max-age=${ttlSeconds}`,
        'content-type': 'application/json',
        [FETCHED_AT]: String(fetchedAtMs),
      }
      await cache.put(keyOf(key), new Response(text, { headers }))
    },
  }
}
