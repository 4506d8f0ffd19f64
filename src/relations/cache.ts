/** What an isolate remembers of decisions over relations. Bounded; forgetting one costs a call. */
import { LRUCache } from 'lru-cache'
import { newTally, type Tally } from '../metrics/tally.ts'
import type { RelationAnswer, RelationDecision, RelationQuery } from './authority.ts'
import { queryKey } from './rule.ts'

export interface RelationCacheOptions {
  /** Above it a decision is too old to be used, milliseconds. 0: none is ever used again. */
  readonly maxStalenessMs: number
  /**
   * Decisions that are kept, at least 1. Fewer where names are long: all queries together may have
   * {@link CHARS_AN_ENTRY} characters for each.
   */
  readonly maxEntries: number
  /** Counts what was known and what was not. Default: one that nobody reads. */
  readonly tally?: Tally | undefined
}

/** Every `nowMs` and `askedMs` is of the same clock, milliseconds. */
export interface RelationCache {
  /** A decision that is younger than the bound, and knows the writes that the query asks for. */
  recall(query: RelationQuery, nowMs: number): RelationDecision | undefined
  /** Keeps a decision, unless it is `unknown`. `askedMs` is when it was ASKED for, not when it came. */
  remember(query: RelationQuery, answer: RelationAnswer, askedMs: number): void
}

/** Of a query's text. Callers choose ids, and one query may be many times as long. */
const CHARS_AN_ENTRY = 256

interface Entry extends RelationAnswer {
  readonly askedMs: number
}

/**
 * Makes the cache of one isolate. A decision's age counts from when it was asked for, so it knows every
 * write that was done before: a relation that is taken away is allowed for at most `maxStalenessMs`
 * more, by this clock. When the clock is set back, decisions of later times are not used. The least
 * recently used go first. Throws `TypeError` for a `maxEntries` that is no whole number above 0.
 */
export function createRelationCache({
  maxStalenessMs,
  maxEntries,
  tally = newTally(),
}: RelationCacheOptions): RelationCache {
  const entries = new LRUCache<string, Entry>({
    max: maxEntries,
    maxSize: maxEntries * CHARS_AN_ENTRY,
    sizeCalculation: (_, key) => key.length,
  })
  const isOff = maxStalenessMs === 0

  return {
    recall(query, nowMs) {
      if (isOff) return undefined
      const entry = entries.get(queryKey(query))
      const ageMs = entry === undefined ? Number.NaN : nowMs - entry.askedMs
      const isGood = ageMs >= 0 && ageMs < maxStalenessMs
      if (entry === undefined || !isGood || entry.version < (query.atLeast ?? 0)) {
        tally.misses += 1
        return undefined
      }
      tally.hits += 1
      return entry.decision
    },

    remember(query, { decision, version }, askedMs) {
      if (isOff || decision.outcome === 'unknown') return
      const key = queryKey(query)
      const before = entries.peek(key)
      // The answer to an earlier question may come later.
      if (before !== undefined && before.askedMs > askedMs) return
      entries.set(key, { decision, version, askedMs })
    },
  }
}
