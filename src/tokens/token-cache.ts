/** The isolate's cache of verified tokens. */
import { LRUCache } from 'lru-cache'
import type { Principal } from '../identity/principal.ts'
import type { VerificationKey } from './key-ring.ts'
import type { KeySet } from './key-set.ts'

/**
 * An eighth of an isolate's 128 MB, for 10,000 tokens of 500 characters. Other features attach keys
 * and assertions to a principal. These need one and a half times as much in addition.
 */
export const DEFAULT_CACHED_TOKEN_BYTES = 16 * 1024 * 1024
/** Measured size of a principal, its entry and its place in the list, without texts. */
const ENTRY_BYTES = 512
/** The token itself, and the strings of the principal, which are parts of it. */
const BYTES_PER_CHARACTER = 2
export const MAX_CACHED_SECONDS = 300

/** Returns the approximate heap size of a cached principal, in bytes, for a text of this length. */
export function cachedBytes(characters: number): number {
  return ENTRY_BYTES + BYTES_PER_CHARACTER * characters
}

/** A verified token, and what its validity depends on. */
export interface Verified {
  readonly principal: Principal
  readonly key: VerificationKey
  readonly keySet: KeySet
  /** Milliseconds since the epoch: `exp` plus the issuer's clock tolerance. */
  readonly expiresAtMs: number
}

export interface TokenCache {
  /** Returns the principal of a token that is still valid, the same object each time. */
  get(token: string, nowMs: number): Principal | undefined
  set(token: string, verified: Verified, nowMs: number): void
}

/**
 * Creates an LRU from token to principal, bounded by its heap size. The key is the exact text of
 * the token: the grammar allows one spelling of a token, and any other text is verified by itself.
 * An entry lives until the token expires, at most 5 minutes, and only while its key set still
 * contains its key. A lookup hashes one string and reads one map: no cryptography, no JSON, no
 * promise.
 *
 * Refused tokens are NOT cached. A sender can vary bad tokens at no cost and would fill the cache.
 * And a signature that is bad today may be valid once a key is published.
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
