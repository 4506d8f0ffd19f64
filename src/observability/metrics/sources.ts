/** Counts that other features keep. They are added to the metrics before each report. */
import type { Tally } from '../../isolate/tally.ts'
import type { MetricName } from './catalogue.ts'
import type { Counters } from './counters.ts'

/** Sums that only increase, each kept by another feature. */
export interface Sources {
  /** Registers a sum. Each `collect` adds its increase since the last one to the counter. */
  add(metric: MetricName, labels: readonly string[], read: () => number): void
  /** Registers the hits and misses of a cache. */
  addCache(name: string, tally: Tally): void
  collect(): void
}

/** Creates the list of sources of this isolate. Only `collect` reads them. */
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
