/** Verified tokens, remembered for a while. */
import { LRUCache } from 'lru-cache'
import type { VerificationKey } from './key-ring.ts'
import type { KeySet } from './key-set.ts'
import type { Principal } from './principal.ts'

/**
 * An eighth of an isolate's 128 MB, for 10,000 tokens of 500 characters. Keys and assertions that
 * others keep with a principal come on top, one and a half times as much.
 */
export const DEFAULT_CACHED_TOKEN_BYTES = 16 * 1024 * 1024
/** What a principal, its entry and the place in the list take, measured; texts aside. */
const ENTRY_BYTES = 512
/** The text itself, and the texts of the principal, which stand in it and are cut out of it. */
const BYTES_PER_CHARACTER = 2
export const MAX_CACHED_SECONDS = 300

/** About what remembering a principal by a text of so many characters takes of the heap, bytes. */
export function cachedBytes(characters: number): number {
  return ENTRY_BYTES + BYTES_PER_CHARACTER * characters
}

/** What a verified token's validity goes on depending on. */
export interface Verified {
  readonly principal: Principal
  readonly key: VerificationKey
  readonly keySet: KeySet
  /** Milliseconds since the epoch: `exp` and the issuer's clock tolerance. */
  readonly expiresAtMs: number
}

export interface TokenCache {
  /** The principal of a token that is still good, the same object each time. */
  get(token: string, nowMs: number): Principal | undefined
  set(token: string, verified: Verified, nowMs: number): void
}

/**
 * An LRU from token to principal, bounded by what it takes of the heap. Its key is the token's
 * exact text: the grammar leaves a token one spelling, and another text is another token, which is
 * verified by itself. An entry lives until the token expires, for 5 minutes at most, and only while
 * its key set still vouches for its key. A look-up hashes one string and reads one map: no crypto,
 * no JSON, no promise.
 *
 * Refusals are NOT remembered: whoever sends bad tokens can vary them for nothing, so the memory
 * would be theirs; and a signature that is bad today may be good once a key is published.
 */
export function createTokenCache(maxBytes: number = DEFAULT_CACHED_TOKEN_BYTES): TokenCache {
  const entries = new LRUCache<string, Verified & { readonly untilMs: number }>({
    maxSize: maxBytes,
    sizeCalculation: (_entry, token) => cachedBytes(token.length),
  })
  return {
    get(token, nowMs) {
      const entry = entries.get(token)
      if (entry === undefined) return undefined
      if (nowMs < entry.untilMs && entry.keySet.vouches(entry.key)) return entry.principal
      entries.delete(token)
      return undefined
    },
    set(token, verified, nowMs) {
      const untilMs = Math.min(verified.expiresAtMs, nowMs + MAX_CACHED_SECONDS * 1000)
      entries.set(token, { ...verified, untilMs })
    },
  }
}
