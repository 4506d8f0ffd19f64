/**
 * What an isolate remembers of refusals, so that repeating them costs no round trip. Bounded, and
 * never needed for correctness: forgetting an entry costs one call.
 */
import { LRUCache } from 'lru-cache'

/** A revoked token stays revoked, but an operator may take it back: looked up again after this. */
export const REVOKED_TOKEN_MEMORY_MS = 60_000
/** Cut-offs are taken back more often, and one covers many tokens. */
export const CUT_OFF_MEMORY_MS = 5_000
/** At about 200 bytes an entry, 2 MB. */
const MAX_ENTRIES = 10_000

/** Remembers, per key, that something holds until a time. */
export interface RefusalMemory<Reason extends object> {
  /** The reason, while it still holds at `nowMs`. */
  recall(key: string, nowMs: number): Reason | undefined
  /** Keeps `reason` for `key` until `untilMs`. */
  remember(key: string, reason: Reason, untilMs: number): void
}

/** An LRU of refusals; the least recently recalled go first. */
export function createRefusalMemory<Reason extends object>(
  maxEntries = MAX_ENTRIES,
): RefusalMemory<Reason> {
  const entries = new LRUCache<string, { readonly reason: Reason; readonly untilMs: number }>({
    max: maxEntries,
  })
  return {
    recall(key, nowMs) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (nowMs < entry.untilMs) return entry.reason
      entries.delete(key)
      return undefined
    },
    remember(key, reason, untilMs) {
      entries.set(key, { reason, untilMs })
    },
  }
}
