/** What an isolate remembers of decisions over relations. Bounded; forgetting one costs a call. */
import { LRUCache } from 'lru-cache'
import { newTally, type Tally } from '../metrics/tally.ts'
import type { RelationAnswer, RelationDecision, RelationQuery } from './authority.ts'
import { queryKey } from './rule.ts'

export interface RelationCacheOptions {
  /** How old a decision may be, milliseconds. 0: none is ever used again. */
  readonly maxStalenessMs: number
  /** Of ordinary ones; of such with long names fewer are kept: {@link CHARS_AN_ENTRY} each, on average. */
  readonly maxEntries: number
  readonly tally?: Tally | undefined
}

/** Every `nowMs` and `askedMs` is of the same clock, milliseconds. */
export interface RelationCache {
  /** What was decided, not longer ago than the bound and by what the query wants to be known. */
  recall(query: RelationQuery, nowMs: number): RelationDecision | undefined
  /** Keeps a decision but an unknown one; `askedMs` is when it was ASKED for, not when it came. */
  remember(query: RelationQuery, answer: RelationAnswer, askedMs: number): void
}

/** Of a query's text. Ids are of callers' choice, and may be five times as long. */
const CHARS_AN_ENTRY = 256

interface Entry extends RelationAnswer {
  readonly askedMs: number
}

/**
 * Makes it. The age of a decision is counted from when it was asked for, so it knows each write that was
 * done by then: one that is taken away is allowed for at most `maxStalenessMs` after, by this clock. A
 * clock that is set back makes all that it has not come to yet unusable. Least recently used go first.
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
