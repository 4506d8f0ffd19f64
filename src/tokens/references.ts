/** References that this isolate knows: opaque tokens and API keys whose records it has seen. */
import { LRUCache } from 'lru-cache'
import { newTally, type Tally } from '../metrics/tally.ts'
import type { Principal } from './principal.ts'
import { REFERENCE_TOLERANCE_SECONDS } from './reference-principal.ts'
import { cachedBytes, MAX_CACHED_SECONDS } from './token-cache.ts'

/** Half of what JWTs get, for some 5,000: one that is not remembered costs no call more. */
const DEFAULT_CACHED_REFERENCE_BYTES = 8 * 1024 * 1024

export interface ReferencesOptions {
  /** The resource that references must be for: the gateway's public URL. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Bytes to remember references in. Default 8 MiB. */
  readonly maxCachedBytes?: number
  /** Where it is counted whether a reference was remembered. */
  readonly tally?: Tally
}

/** The references of an isolate: `authenticate` looks here first, and `admit` fills it. */
export interface References {
  readonly audience: string
  /** The principal of a reference that this isolate knows: the same object each time. */
  recall(text: string): Principal | undefined
  /** Keeps the principal of a reference that is good, its revocation aside. */
  remember(text: string, principal: Principal): void
}

/**
 * Makes the memory of an isolate: an LRU, bounded in bytes, from a reference's exact text to its
 * principal, each for as long as that is valid and 5 minutes at most, like verified JWTs. That its
 * record is removed is not noticed meanwhile, so whoever ends a reference revokes its token id too,
 * which is asked for on each request. References that are not known are NOT remembered: they cost
 * their sender nothing.
 */
export function createReferences({
  audience,
  now = Date.now,
  maxCachedBytes = DEFAULT_CACHED_REFERENCE_BYTES,
  tally = newTally(),
}: ReferencesOptions): References {
  const entries = new LRUCache<string, { readonly principal: Principal; readonly untilMs: number }>(
    {
      maxSize: maxCachedBytes,
      // A reference's text says nothing of how much its principal holds.
      sizeCalculation: ({ principal }) => cachedBytes(JSON.stringify(principal).length),
    },
  )
  return {
    audience,
    recall(text) {
      const entry = entries.get(text)
      if (entry !== undefined && now() < entry.untilMs) {
        tally.hits += 1
        return entry.principal
      }
      tally.misses += 1
      if (entry !== undefined) entries.delete(text)
      return undefined
    },
    remember(text, principal) {
      const nowMs = now()
      const endMs = (principal.expiresAtSeconds + REFERENCE_TOLERANCE_SECONDS) * 1000
      const untilMs = Math.min(endMs, nowMs + MAX_CACHED_SECONDS * 1000)
      entries.set(text, { principal, untilMs })
    },
  }
}
