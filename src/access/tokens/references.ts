/** The isolate's cache of references: opaque tokens and API keys that the store has resolved. */
import { createLruMap } from '../../isolate/lru-map.ts'
import { countEviction, newTally, type Tally } from '../../isolate/tally.ts'
import type { Principal } from '../principal.ts'
import { toleranceSeconds } from './reference.ts'
import { type CachedUntil, cachedBytes, dropEnded, MAX_CACHED_SECONDS, tryUse } from './verifier.ts'

/** Half of the size for JWTs, for some 6,000 references. A miss costs no extra call. */
const DEFAULT_CACHED_REFERENCE_BYTES = 20 * 1024 * 1024

export interface ReferencesOptions {
  /** The gateway's public URL. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Heap that cached references may use. Default 20 MiB. */
  readonly maxCachedBytes?: number
  readonly tally?: Tally
}

/** The cached references of an isolate. `authenticate` reads them, and `admit` adds them. */
export interface References {
  readonly audience: string
  /** Returns the principal of a cached reference, the same object each time. */
  recall(text: string): Principal | undefined
  /** Caches the principal of a valid reference. Its revocation is checked separately. */
  remember(text: string, principal: Principal): void
}

/**
 * Creates the cache of an isolate. An entry lives until the principal expires, and at most 5
 * minutes, like that of a JWT. The cache does not detect that a record was removed. To end a
 * reference, its token id must be revoked as well, which is checked on each request. Unknown
 * references are NOT cached, because a sender can create any number of them at no cost.
 */
export function createReferences({
  audience,
  now = () => Date.now(),
  maxCachedBytes = DEFAULT_CACHED_REFERENCE_BYTES,
  tally = newTally(),
}: ReferencesOptions): References {
  const entries = createLruMap<string, { readonly principal: Principal } & CachedUntil>({
    maxSize: maxCachedBytes,
    // The length of a reference does not say how much memory its principal needs.
    sizeCalculation: ({ principal }) => cachedBytes(JSON.stringify(principal).length),
    dispose: (_entry, _text, reason) => countEviction(tally, reason),
  })
  return {
    audience,
    recall(text) {
      const entry = entries.get(text)
      if (entry !== undefined && tryUse(entry, now())) {
        tally.hits += 1
        return entry.principal
      }
      tally.misses += 1
      if (entry !== undefined) entries.delete(text)
      return undefined
    },
    remember(text, principal) {
      const nowMs = now()
      const endMs =
        (principal.expiresAtSeconds + toleranceSeconds(principal.signIn !== undefined)) * 1000
      const untilMs = Math.min(endMs, nowMs + MAX_CACHED_SECONDS * 1000)
      dropEnded(entries, nowMs)
      entries.set(text, { principal, untilMs, usedMs: nowMs })
    },
  }
}
