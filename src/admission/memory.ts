/**
 * The isolate's cache of refusals, which saves a round trip for repeated requests. It is bounded.
 * Correctness does not depend on it: a missing entry costs one call.
 */
import { LRUCache } from 'lru-cache'

/**
 * A revoked token stays revoked unless an operator lifts the revocation. It is checked again after
 * this time.
 */
export const REVOKED_TOKEN_MEMORY_MS = 10_000
/** An operator may reset a window or override its limit. */
export const EXHAUSTED_LIMIT_MEMORY_MS = 5_000
/** 2 MB, at about 200 bytes per entry. */
const MAX_ENTRIES = 10_000

/** A cached refusal. */
export interface Remembered<Reason> {
  readonly reason: Reason
  /** Until when the refusal is valid without a call, in milliseconds since the epoch. */
  readonly untilMs: number
}

/** Caches refusals by key, each with its end of validity. */
export interface RefusalMemory<Reason> {
  /** Returns the refusal, even if it is no longer valid. */
  recall(key: string): Remembered<Reason> | undefined
  remember(key: string, reason: Reason, untilMs: number): void
  forget(key: string): void
}

/** Creates an LRU cache of refusals. It evicts the least recently recalled first. */
export function createRefusalMemory<Reason>(maxEntries = MAX_ENTRIES): RefusalMemory<Reason> {
  const entries = new LRUCache<string, Remembered<Reason>>({ max: maxEntries })
  return {
    recall: (key) => entries.get(key),
    remember(key, reason, untilMs) {
      entries.set(key, { reason, untilMs })
    },
    forget(key) {
      entries.delete(key)
    },
  }
}
