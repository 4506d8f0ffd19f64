/** Loads a key set from its provider or from the shared cache, and validates both. */
import { Unavailable } from '../errors.ts'
import { withDeadline } from '../isolate/timers.ts'
import { parseStrictJson } from '../validators/json.ts'
import type { Algorithm } from '../validators/jwk.ts'
import { type IgnoredKey, importKeys, type KeyRing } from './key-ring.ts'
import { edgeKeySetCache, type KeySetCache } from './key-set-cache.ts'
import {
  DEFAULT_KEY_SET_TIMEOUT_MS,
  DEFAULT_MAX_KEY_SET_BYTES,
  download,
} from './key-set-download.ts'
import {
  DEFAULT_MAX_AGE_SECONDS,
  DEFAULT_MAX_STALE_SECONDS,
  type Lifetime,
  lifetimeOf,
} from './key-set-lifetime.ts'

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
