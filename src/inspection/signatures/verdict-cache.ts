/** Verdicts of texts that were scanned before. */
import { LRUCache } from 'lru-cache'
import { newTally, type Tally } from '../../metrics/tally.ts'

/** An isolate has 128 MB; this is what some ten thousand short texts take. */
export const DEFAULT_VERDICT_BYTES = 2 * 1_024 * 1_024
/** Longer texts seldom repeat, and V8 hashes them by their length alone. */
export const MAX_REMEMBERED_CHARS = 16_000
/** An entry of the map and its place in the list, measured; the text aside. */
const ENTRY_BYTES = 160
const BYTES_PER_CHARACTER = 2

/** What rules a text matches: a bit for each. */
export type Verdict = number

export interface VerdictCache {
  readonly tally: Tally
  get(text: string): Verdict | undefined
  set(text: string, verdict: Verdict): void
}

/**
 * An LRU from a text to what it matches, bounded by what it takes of the heap. Its key is the exact
 * text, so a text that differs in one character is scanned by itself. A verdict depends on nothing
 * but the text and the rules, which an isolate does not change; so none goes stale, and whoever
 * fills the cache with texts of their own only makes others scan again.
 *
 * Does NOT hold anything about a caller: who may do what is decided anew each time.
 */
export function createVerdictCache(maxBytes: number = DEFAULT_VERDICT_BYTES): VerdictCache {
  const verdicts = new LRUCache<string, Verdict>({
    maxSize: maxBytes,
    sizeCalculation: (_verdict, text) => ENTRY_BYTES + BYTES_PER_CHARACTER * text.length,
  })
  const tally = newTally()
  return {
    tally,
    get(text) {
      const known = text.length > MAX_REMEMBERED_CHARS ? undefined : verdicts.get(text)
      if (known === undefined) tally.misses += 1
      else tally.hits += 1
      return known
    },
    set(text, verdict) {
      if (text.length <= MAX_REMEMBERED_CHARS) verdicts.set(ownCopy(text), verdict)
    },
  }
}

/** A part that was cut out of a body would keep all of the body alive. */
function ownCopy(text: string): string {
  return decodeURIComponent(encodeURIComponent(text))
}
