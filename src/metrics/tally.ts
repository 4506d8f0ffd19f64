/** Numbers that are kept where something happens, and read when an isolate reports. */
import type { MetricName } from './catalogue.ts'
import type { Counters } from './counters.ts'

/** How often a memory knew what it was asked. Whoever looks into it counts. */
export interface Tally {
  hits: number
  misses: number
}

export const newTally = (): Tally => ({ hits: 0, misses: 0 })

/** How many audit events went which way; whoever sends them counts. */
export interface AuditTally {
  sent: number
  spilled: number
  lost: number
}

export const newAuditTally = (): AuditTally => ({ sent: 0, spilled: 0, lost: 0 })

/** Sums that only grow, and belong to somebody else. */
export interface Sources {
  /** Adds what `read` returns more than at the last `collect` to a counter. */
  add(metric: MetricName, labels: readonly string[], read: () => number): void
  /** Adds hits and misses of a memory. */
  addCache(name: string, tally: Tally): void
  collect(): void
}

/** Makes the list of an isolate's sources; nothing is read but by `collect`. */
export function createSources(counters: Counters): Sources {
  const sources: { readonly place: number; readonly read: () => number; seen: number }[] = []

  function add(metric: MetricName, labels: readonly string[], read: () => number): void {
    sources.push({ place: counters.counter(metric, labels), read, seen: 0 })
  }

  return {
    add,
    addCache(name, tally) {
      add('portcullis_cache_requests_total', [name, 'hit'], () => tally.hits)
      add('portcullis_cache_requests_total', [name, 'miss'], () => tally.misses)
    },
    collect() {
      for (const source of sources) {
        const sum = source.read()
        counters.add(source.place, sum - source.seen)
        source.seen = sum
      }
    },
  }
}
