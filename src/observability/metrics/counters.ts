import type { Tally } from '../../isolate/tally.ts'
import { BUCKETS_MS, type MetricName } from './catalogue.ts'

export type Counters = ReturnType<typeof createCounters>

/** Number of places of a histogram: its buckets, the bucket without a bound, and the sum. */
const HISTOGRAM_PLACES = BUCKETS_MS.length + 2
/** More than a policy of some hundred routes needs. At 200 bytes each, a megabyte. */
const MAX_SERIES = 5_000

/** Returns the name of a series in the totals: JSON of the metric's name and the label values. */
export const seriesName = (metric: string, labels: readonly string[], part?: string): string =>
  JSON.stringify(part === undefined ? [metric, ...labels] : [metric, ...labels, part])

/**
 * Creates the counters of an isolate since its last report. An addition is two reads and a write of an array, without a
 * string or an object. Beyond 5,000 series, counters share the series of dropped counts, and
 * histograms are dropped. So neither a mistake nor a caller can fill the memory of the isolate. `counted` adds
 * the counts of a runtime.
 */
export function createCounters(
  counted?: () => Iterable<readonly [series: string, increase: number]>,
) {
  const places = new Map<string, number>()
  const names: string[] = []
  const values: number[] = []
  const sources: { readonly place: number; readonly read: () => number; counted: number }[] = []

  function reserve(name: string, more: readonly string[] = []): number {
    const place = names.length
    places.set(name, place)
    names.push(name, ...more)
    for (let at = place; at < names.length; at++) values.push(0)
    return place
  }
  const dropped = reserve(seriesName('portcullis_metrics_dropped_total', []))
  // Reserves places for a whole histogram, so that `observe` works the same for a dropped one.
  const discarded = reserve('', Array<string>(HISTOGRAM_PLACES - 1).fill(''))

  function placeOf(metric: string, labels: readonly string[]): number {
    const name = seriesName(metric, labels)
    const known = places.get(name)
    if (known !== undefined) return known
    return names.length < MAX_SERIES ? reserve(name) : dropped
  }

  const counters = {
    /** Returns the place of a series. Store the place, because each lookup builds a string. */
    counter: (metric: MetricName, labels: readonly string[]) => placeOf(metric, labels),
    /** The same for a metric that a feature declares. */
    featureCounter: placeOf,
    /** Returns the place of a histogram's first bucket. */
    histogram(metric: MetricName, labels: readonly string[]): number {
      const known = places.get(seriesName(metric, labels, '0'))
      if (known !== undefined) return known
      if (names.length + HISTOGRAM_PLACES > MAX_SERIES) return discarded
      const buckets = Array.from({ length: BUCKETS_MS.length + 1 }, (_, at) =>
        seriesName(metric, labels, String(at)),
      )
      const [first = '', ...others] = buckets
      return reserve(first, [...others, seriesName(metric, labels, 'sum')])
    },
    add(place: number, amount: number): void {
      values[place] = (values[place] as number) + amount
    },
    /** Adds a duration in whole milliseconds to a histogram. */
    observe(place: number, ms: number): void {
      let bucket = 0
      while (bucket < BUCKETS_MS.length && ms > (BUCKETS_MS[bucket] as number)) bucket += 1
      counters.add(place + bucket, 1)
      counters.add(place + HISTOGRAM_PLACES - 1, ms)
    },
    /** Registers a sum of another feature that only increases. Each `take` counts its increase. */
    addSource(metric: MetricName, labels: readonly string[], read: () => number): void {
      sources.push({ place: counters.counter(metric, labels), read, counted: 0 })
    },
    addCache(name: string, tally: Tally): void {
      counters.addSource('portcullis_cache_requests_total', [name, 'hit'], () => tally.hits)
      counters.addSource('portcullis_cache_requests_total', [name, 'miss'], () => tally.misses)
    },
    /** Returns the counts since the last call by {@link seriesName}, all above 0. Resets them. */
    take(): ReadonlyMap<string, number> {
      for (const source of sources) {
        const sum = source.read()
        counters.add(source.place, sum - source.counted)
        source.counted = sum
      }
      const counts = new Map<string, number>()
      for (const [place, value] of values.entries()) {
        values[place] = 0
        const name = names[place] as string
        if (value !== 0 && name !== '') counts.set(name, value)
      }
      for (const [name, increase] of counted?.() ?? []) counts.set(name, increase)
      return counts
    },
  }
  return counters
}
