/** Verified tokens, remembered for a while. */
import { LRUCache } from 'lru-cache'
import type { VerificationKey } from './key-ring.ts'
import type { KeySet } from './key-set.ts'
import type { Principal } from './principal.ts'

/** At most 8 KB of token each, so 8 MB at the very worst of an isolate's 128. */
export const DEFAULT_CACHED_TOKENS = 1_000
export const MAX_CACHED_SECONDS = 300

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
 * A bounded LRU from token to principal. Its key is the token's exact text: the grammar leaves a
 * token one spelling, and another text is another token, which is verified by itself. An entry
 * lives until the token expires, for 5 minutes at most, and only while its key set still vouches
 * for its key. A look-up hashes one string and reads one map: no crypto, no JSON, no promise.
 *
 * Refusals are NOT remembered: whoever sends bad tokens can vary them for nothing, so the memory
 * would be theirs; and a signature that is bad today may be good once a key is published.
 */
export function createTokenCache(maxTokens: number = DEFAULT_CACHED_TOKENS): TokenCache {
  const entries = new LRUCache<string, Verified & { readonly untilMs: number }>({ max: maxTokens })
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
