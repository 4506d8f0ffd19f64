import { createLruMap } from '../../isolate/lru-map.ts'
import { isWithin } from '../../isolate/period.ts'
import { newTally, type Tally } from '../../isolate/tally.ts'
import type { RelationAnswer, RelationDecision, RelationQuery } from './decision-point.ts'
import { queryKey } from './rule.ts'

export interface RelationCacheOptions {
  /** Maximum age of a decision that is used, in milliseconds. 0 turns the cache off. */
  readonly maxStalenessMs: number
  /**
   * Maximum number of decisions, at least 1. The cache keeps fewer when names are long: all keys
   * together may use {@link CHARS_PER_ENTRY} characters for each entry.
   */
  readonly maxEntries: number
  /** Counts hits and misses. Default: a counter that no metric reads. */
  readonly tally?: Tally | undefined
}

/** Port: the cache of relation decisions. `nowMs` and `startMs` are read from the same clock. */
export interface RelationCache {
  /** Returns a decision that is young enough and includes the writes that the query requires. */
  get(query: RelationQuery, nowMs: number): RelationDecision | undefined
  /**
   * Stores a decision, unless it is `unknown`. `startMs` is the time at which the call STARTED, not
   * the time at which the answer arrived.
   */
  set(query: RelationQuery, answer: RelationAnswer, startMs: number): void
}

/** Callers choose ids, so one key may be many times as long as this average. */
const CHARS_PER_ENTRY = 256

interface Entry extends RelationAnswer {
  readonly startMs: number
}

/**
 * Creates the cache of one isolate. The age of a decision counts from the start of its call, so the
 * decision includes every write that completed before. A deleted relation is therefore still
 * allowed for at most `maxStalenessMs`, measured by this clock.
 *
 * When the clock is set back, the cache does not use decisions with a later time. It evicts the
 * least recently used entries first. Throws `TypeError` if `maxEntries` is not an integer above 0.
 */
export function createRelationCache({
  maxStalenessMs,
  maxEntries,
  tally = newTally(),
}: RelationCacheOptions): RelationCache {
  const entries = createLruMap<string, Entry>({
    max: maxEntries,
    maxSize: maxEntries * CHARS_PER_ENTRY,
    sizeCalculation: (_, key) => key.length,
  })

  return {
    get(query, nowMs) {
      const entry = entries.get(queryKey(query))
      if (
        entry === undefined ||
        !isWithin(entry.startMs, maxStalenessMs, nowMs, 0) ||
        entry.version < (query.atLeast ?? 0)
      ) {
        tally.misses += 1
        return undefined
      }
      tally.hits += 1
      return entry.decision
    },

    set(query, { decision, version }, startMs) {
      if (decision.outcome === 'unknown') return
      const key = queryKey(query)
      const before = entries.peek(key)
      // The answer to an earlier call can arrive after the answer to a later one.
      const isLater = before !== undefined && before.startMs > startMs
      if (isLater && isWithin(before.startMs, maxStalenessMs, startMs)) return
      entries.set(key, { decision, version, startMs })
    },
  }
}
