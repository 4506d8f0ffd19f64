/** Gets a key set from its provider or from the second tier, and believes neither. */
import { Unavailable } from '../errors.ts'
import { withDeadline } from '../timers.ts'
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

/** A good key set, and since when it is known. */
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
  /** Algorithms of the issuer. HS256 is left out: a published secret is none. */
  readonly algorithms: readonly Algorithm[]
  /** Longest time that a removed key is accepted while the provider answers. Default 300. */
  readonly maxAgeSeconds?: number
  /** How long a good set serves while the provider fails. Default 86,400. */
  readonly maxStaleSeconds?: number
  /** Deadline of one download, its body included; below the lease of 3 s. Default 2,000. */
  readonly timeoutMs?: number
  /** Largest document. Default 262,144. */
  readonly maxBytes?: number
  /** Second tier. Default the Cache API, where there is one; null for none. */
  readonly cache?: KeySetCache | null | undefined
  /** In [0, 1). */
  readonly random?: () => number
}

export interface KeySetSource {
  /** Throws `Unavailable` unless the provider publishes at least one usable key. */
  fetch(previous: Snapshot | undefined, nowMs: number): Promise<Snapshot>
  /** What the second tier has. Never throws. */
  recall(nowMs: number): Promise<Snapshot | undefined>
  /** Puts a snapshot into the second tier. Never throws. */
  keep(snapshot: Snapshot): Promise<void>
}

/** `{"keys":[{"x5c":[""]}]}` has four; extensions may have some more. */
const MAX_JSON_DEPTH = 8
/** The second tier saves time or is not worth asking. */
const RECALL_TIMEOUT_MS = 250
/** Beside the answer. */
const KEEP_TIMEOUT_MS = 2_000
/** Clocks of one data centre agree better than this. */
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
      // An unchanged document keeps its imported keys, and with them every cached token.
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
        // It is a convenience; the next isolate fetches for itself.
      }
    },
  }
}
