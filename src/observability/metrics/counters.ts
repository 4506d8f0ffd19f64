/** The counts of an isolate since its last report, in arrays of numbers. */
import { BUCKETS_MS, bucketOf, type MetricName } from './catalogue.ts'

/** A report: the amount to add to each series. */
export interface Deltas {
  /** Names of series, in the form of {@link seriesName}. */
  readonly series: readonly string[]
  /** Integers above 0, one for each series. */
  readonly values: readonly number[]
}

export interface Counters {
  /** Returns the place of a series. Store the place, because each lookup builds a string. */
  counter(metric: MetricName, labels: readonly string[]): number
  /** Returns the place of a histogram's first bucket. */
  histogram(metric: MetricName, labels: readonly string[]): number
  /** Adds to a counter. */
  add(place: number, amount: number): void
  /** Adds a duration in whole milliseconds to a histogram. */
  observe(place: number, ms: number): void
  /** Returns all counts since the last call, and resets them. */
  take(): Deltas
}

/** Number of places of a histogram: its buckets, the bucket without a bound, and the sum. */
const HISTOGRAM_PLACES = BUCKETS_MS.length + 2
/** More than a policy of some hundred routes needs. At 200 bytes each, a megabyte. */
export const MAX_SERIES = 5_000

/** Returns the name of a series in the totals: JSON of the metric's name and the label values. */
export const seriesName = (metric: MetricName, labels: readonly string[], part?: string): string =>
  JSON.stringify(part === undefined ? [metric, ...labels] : [metric, ...labels, part])

/**
 * Creates the counters of an isolate. An addition is two reads and a write of an array, without a
 * string or an object. Beyond 5,000 series, counters share the series of dropped counts, and
 * histograms are dropped. So neither a mistake nor a caller can fill the memory of the isolate.
 */
export function createCounters(): Counters {
  const places = new Map<string, number>()
  const names: string[] = []
  const values: number[] = []

  function reserve(name: string, more: readonly string[] = []): number {
    const place = names.length
    places.set(name, place)
    names.push(name, ...more)
    for (let at = place; at < names.length; at++) values.push(0)
    return place
  }
  const dropped = reserve(seriesName('portcullis_metrics_dropped_total', []))
  // Reserves places for a whole histogram, so that `observe` works the same for a dropped one.
  const nowhere = reserve('', Array<string>(HISTOGRAM_PLACES - 1).fill(''))

  return {
    counter(metric, labels) {
      const name = seriesName(metric, labels)
      const known = places.get(name)
      if (known !== undefined) return known
      return names.length < MAX_SERIES ? reserve(name) : dropped
    },
    histogram(metric, labels) {
      const known = places.get(seriesName(metric, labels, '0'))
      if (known !== undefined) return known
      if (names.length + HISTOGRAM_PLACES > MAX_SERIES) return nowhere
      const buckets = Array.from({ length: BUCKETS_MS.length + 1 }, (_, at) =>
        seriesName(metric, labels, String(at)),
      )
      const [first = '', ...others] = buckets
      return reserve(first, [...others, seriesName(metric, labels, 'sum')])
    },
    add(place, amount) {
      values[place] = (values[place] as number) + amount
    },
    observe(place, ms) {
      const bucket = place + bucketOf(ms)
      values[bucket] = (values[bucket] as number) + 1
      const sum = place + HISTOGRAM_PLACES - 1
      values[sum] = (values[sum] as number) + ms
    },
    take() {
      const series: string[] = []
      const amounts: number[] = []
      for (const [place, value] of values.entries()) {
        if (value === 0) continue
        values[place] = 0
        const name = names[place] as string
        if (name === '') continue
        series.push(name)
        amounts.push(value)
      }
      return { series, values: amounts }
    },
  }
}
