import type { Verdict } from '../../inspection/judge.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { newTally } from '../../isolate/tally.ts'

/** Room for about ten thousand short texts. An isolate has 128 MB. */
const DEFAULT_VERDICT_BYTES = 2 * 1_024 * 1_024
/** Longer texts seldom repeat, and V8 hashes them by their length alone. */
const MAX_CACHED_CHARS = 16_000
/** Measured size of a map entry and its place in the list, without the text. */
const ENTRY_BYTES = 160
const BYTES_PER_CHARACTER = 2

export type VerdictCache = ReturnType<typeof createVerdictCache>

/**
 * Creates an LRU cache from a text to its verdict, bounded by its size on the heap. A verdict depends
 * only on the exact text and the rules, so it never becomes stale. A caller that fills the cache with
 * its own texts only causes other texts to be scanned again.
 */
export function createVerdictCache(maxBytes: number = DEFAULT_VERDICT_BYTES) {
  const verdicts = createLruMap<string, Verdict>({
    maxSize: maxBytes,
    sizeCalculation: (_verdict, text) => ENTRY_BYTES + BYTES_PER_CHARACTER * text.length,
  })
  const tally = newTally()
  return {
    tally,
    get(text: string): Verdict | undefined {
      const known = text.length > MAX_CACHED_CHARS ? undefined : verdicts.get(text)
      if (known === undefined) tally.misses += 1
      else tally.hits += 1
      return known
    },
    set(text: string, verdict: Verdict): void {
      if (text.length <= MAX_CACHED_CHARS) verdicts.set(ownCopy(text), verdict)
    },
  }
}

/** Copies the text, because a substring of a body would keep the whole body in memory. */
function ownCopy(text: string): string {
  return decodeURIComponent(encodeURIComponent(text))
}
