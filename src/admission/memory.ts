/**
 * What an isolate remembers of refusals, so that repeating them costs no round trip. Bounded, and
 * never needed for correctness: forgetting an entry costs one call.
 */
import { LRUCache } from 'lru-cache'

/** A revoked token stays revoked, but an operator may take it back: looked up again after this. */
export const REVOKED_TOKEN_MEMORY_MS = 10_000
/** A window may be started anew, or get another size, by an operator. */
export const EXHAUSTED_LIMIT_MEMORY_MS = 5_000
/** At about 200 bytes an entry, 2 MB. */
const MAX_ENTRIES = 10_000

/** One refusal. */
export interface Remembered<Reason> {
  readonly reason: Reason
  /** Until when it holds without asking, milliseconds since the epoch. */
  readonly untilMs: number
}

/** Remembers, per key, that something was refused, and until when that is sure. */
export interface RefusalMemory<Reason> {
  /** What was refused, also when that is not sure any more. */
  recall(key: string): Remembered<Reason> | undefined
  remember(key: string, reason: Reason, untilMs: number): void
  forget(key: string): void
}

/** An LRU of refusals; the least recently recalled go first. */
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
