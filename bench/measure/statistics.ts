/** Statistics for the benchmark. */

/** Returns the median. Throws a `RangeError` for no values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('median: no values')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2
}

/** Returns the nearest rank of `quantile` (0 to 1), or null for no values. */
export function percentile(values: readonly number[], quantile: number): number | null {
  if (values.length === 0) return null
  const sorted = Float64Array.from(values).sort()
  const rank = Math.max(1, Math.ceil(quantile * sorted.length))
  return rounded(sorted[rank - 1] as number, 1)
}

/** Returns `value / base`. Throws a `RangeError` if the base is not above 0. */
export function ratio(value: number, base: number): number {
  if (!(base > 0)) throw new RangeError(`ratio: the base is ${base}`)
  return value / base
}

/** Rounds `value` to at most `digits` decimal places. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

export const sumOf = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0)

/** Returns the median of one number over rounds. Throws a `RangeError` for no rounds. */
export function medianOf<Key extends string>(
  rounds: readonly Readonly<Record<Key, number>>[],
  key: Key,
  digits = 2,
): number {
  return rounded(median(rounds.map((round) => round[key])), digits)
}

/** Returns the median of the ratios of each round to the same round of another contestant. */
export function ratioOf<Key extends string>(
  rounds: readonly Readonly<Record<Key, number>>[],
  base: readonly Readonly<Record<Key, number>>[],
  key: Key,
): number {
  return ratioSpreadOf(rounds, base, key).median
}

export interface Spread {
  readonly median: number
  /** The first and the third quartile. */
  readonly quartiles: readonly [number, number]
}

/** Returns the median and the quartiles of values. Throws a `RangeError` for no values. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const half = Math.ceil(sorted.length / 2)
  const quartile = (part: readonly number[]) => rounded(median(part), 3)
  return {
    median: rounded(median(sorted), 3),
    quartiles: [quartile(sorted.slice(0, half)), quartile(sorted.slice(-half))],
  }
}

/** Returns the spread of the ratios of each round to the same round of another contestant. */
export function ratioSpreadOf<Key extends string>(
  rounds: readonly Readonly<Record<Key, number>>[],
  base: readonly Readonly<Record<Key, number>>[],
  key: Key,
): Spread {
  return spreadOf(rounds.map((round, index) => ratio(round[key], base[index]?.[key] ?? 0)))
}

/** Returns `0 of 182,204`. */
export function noneOf(count: number): string {
  return `0 of ${count.toLocaleString('en')}`
}

/** Cores that other processes may use without an effect on the results. */
const QUIET_CORES = 0.1

/** Returns a note if other processes kept the machine busy. */
export function noiseNotes(samples: readonly { readonly otherCores: number }[]): string[] {
  const cores = Math.max(0, ...samples.map(({ otherCores }) => otherCores))
  if (cores <= QUIET_CORES) return []
  return [
    `Other processes used up to ${cores.toFixed(1)} cores during the measurement. Trust only ratios.`,
  ]
}

/** Recorded latencies. A run has at most some hundred thousand, so all values are kept. */
export interface Latencies {
  readonly count: number
  /** Mean in milliseconds. Throws a `RangeError` if nothing was recorded. */
  readonly meanMs: number
  record(ms: number): void
  /**
   * Returns the latency in milliseconds that a share of `quantile` (0 to 1) does not exceed: the
   * nearest rank, to 10 us. Throws a `RangeError` if nothing was recorded.
   */
  percentile(quantile: number): number
  /** Returns all values in milliseconds, for another process. */
  values(): readonly number[]
  /** Adds values in milliseconds. */
  add(values: readonly number[]): void
}

export function createLatencies(): Latencies {
  const values: number[] = []
  let sorted: Float64Array | undefined
  const recorded = () => {
    if (values.length === 0) throw new RangeError('latencies: nothing was recorded')
    return values
  }
  return {
    get count() {
      return values.length
    },
    get meanMs() {
      return sumOf(recorded(), (ms) => ms) / values.length
    },
    record(ms) {
      sorted = undefined
      values.push(rounded(ms, 3))
    },
    percentile(quantile) {
      sorted ??= Float64Array.from(recorded()).sort()
      return rounded(sorted[Math.max(1, Math.ceil(quantile * sorted.length)) - 1] as number, 2)
    },
    values: () => values,
    add(others) {
      sorted = undefined
      for (const ms of others) values.push(ms)
    },
  }
}
