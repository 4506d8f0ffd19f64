/** What an isolate has counted and not reported yet: numbers in arrays. */
import { BUCKETS_MS, bucketOf, type MetricName } from './catalogue.ts'

/** A report: what to add to which series. */
export interface Deltas {
  /** Names of series, as {@link seriesName} makes them. */
  readonly series: readonly string[]
  /** Whole numbers above 0, one for each. */
  readonly values: readonly number[]
}

export interface Counters {
  /** The place of a series, to be kept: looking it up makes a text. */
  counter(metric: MetricName, labels: readonly string[]): number
  /** The place of a histogram's first bucket. */
  histogram(metric: MetricName, labels: readonly string[]): number
  /** Adds to a counter. */
  add(place: number, amount: number): void
  /** Adds a duration, whole milliseconds, to a histogram. */
  observe(place: number, ms: number): void
  /** Takes all that was counted since the last call. */
  take(): Deltas
}

/** What a histogram takes: its buckets, the one without a bound, and the sum. */
const HISTOGRAM_PLACES = BUCKETS_MS.length + 2
/** More than any policy of some hundred routes has. At 200 bytes each, a megabyte. */
export const MAX_SERIES = 5_000

/** How a series is called where isolates add up: JSON, the metric's name and the labels' values. */
export const seriesName = (metric: MetricName, labels: readonly string[], part?: string): string =>
  JSON.stringify(part === undefined ? [metric, ...labels] : [metric, ...labels, part])

/**
 * Makes the counters of an isolate. Adding is two reads and a write of an array: no text, no
 * object. Counters beyond 5,000 series share the one that tells of dropped counts, and histograms
 * are not kept, so that neither a mistake nor a caller fills the isolate.
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
  // A whole one, so that adding needs not know whether a histogram had room.
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
