/** Judges pairs of measurements, and formats the result of a comparison. Pure. */
import { median } from '../measure/statistics.ts'
import { table } from '../text.ts'
import type { MeasuredPairs, Slices } from './measure-pairs.ts'
import { type CompareOptions, MIN_STARTS } from './options.ts'
import type { Revision, SideName } from './sides.ts'

/** A measured median, and the interval of the true one. */
export interface MedianInterval {
  readonly median: number
  readonly low: number
  readonly high: number
  /** The confidence of the interval, at least `CONFIDENCE`. */
  readonly coverage: number
}

/** `noisy`: the machine was too busy to decide. */
export type Verdict = 'ok' | 'regression' | 'noisy'

const CONFIDENCE = 0.95

/**
 * Returns the interval of the sign test, between order statistics. It is exact for any distribution,
 * so a single outlier does not move it. Throws a `RangeError` for fewer values than `MIN_STARTS`.
 */
export function medianInterval(values: readonly number[]): MedianInterval {
  const { length } = values
  if (length < MIN_STARTS) throw new RangeError(`medianInterval: needs ${MIN_STARTS} values`)
  // The true median is below the value of rank r + 1 with the probability of at most r heads.
  let rank = 0
  let outside = 2 * 0.5 ** length
  let chance = outside
  for (let next = 1; next < length / 2; next++) {
    chance *= (length - next + 1) / next
    if (outside + chance > 1 - CONFIDENCE) break
    outside += chance
    rank = next
  }
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: median(sorted),
    low: sorted[rank] as number,
    high: sorted[length - 1 - rank] as number,
    coverage: 1 - outside,
  }
}

/**
 * Judges ratios of HEAD to BASE. A regression has a median above `threshold` and an interval above 1,
 * so that chance does not explain it. An interval within the threshold is ok. Everything else is
 * noisy.
 */
export function verdictOf(
  { median: middle, low, high }: MedianInterval,
  threshold: number,
): Verdict {
  if (middle > threshold && low > 1) return 'regression'
  return high <= threshold ? 'ok' : 'noisy'
}

export type Comparison = ReturnType<typeof compared>

/** The pairs of one start have the same processes, so a start is one value: the median of its pairs. */
export function compared(
  revisions: Readonly<Record<SideName, Revision>>,
  measured: readonly MeasuredPairs[],
  { thresholdPercent }: Pick<CompareOptions, 'thresholdPercent'>,
) {
  const starts = measured.map(({ pairs }) => median(pairs.map(({ cpuRatio }) => cpuRatio)))
  const cpu = medianInterval(starts)
  return {
    ...revisions,
    verdict: verdictOf(cpu, 1 + thresholdPercent / 100),
    cpu,
    /** The CPU ratio of each start. */
    starts,
    pairs: measured.flatMap(({ pairs }) => pairs),
    /** Of the first start. */
    redisCalls: measured[0]?.redisCalls,
    burnedRounds: measured[0]?.burnedRounds,
    repeats: measured.reduce((sum, { repeats }) => sum + repeats, 0),
  }
}

/** Returns the medians, the ratios with their intervals, and the verdict as text. */
export function comparisonText(
  comparison: Comparison,
  {
    thresholdPercent,
    slowDownPercent,
  }: Pick<CompareOptions, 'thresholdPercent' | 'slowDownPercent'>,
): string {
  const { pairs, starts, redisCalls, cpu, repeats } = comparison
  const rowOf = (name: SideName) => {
    const middle = (key: keyof Slices) => median(pairs.map((pair) => pair[name][key]))
    return [
      titleOf(name, comparison[name]),
      middle('cpuMicros').toFixed(1),
      middle('requestsPerSecond').toFixed(0),
      (redisCalls?.[name] ?? 0).toFixed(2),
    ]
  }
  const others = Math.max(...pairs.map(({ otherCores }) => otherCores))
  return [
    table(['', 'CPU us', 'req/s', 'Redis calls'], [rowOf('base'), rowOf('head')]),
    '',
    `CPU for each request, HEAD to BASE: ${intervalText(cpu)}, of ${starts.length} starts.`,
    `Other processes used up to ${others.toFixed(1)} cores during the measurement.`,
    ...(repeats === 0 ? [] : [`${repeats} measurements failed because of them and were repeated.`]),
    ...(slowDownPercent === 0
      ? []
      : [`HEAD was slowed down by ${slowDownPercent} %, so the result does not judge its code.`]),
    '',
    SENTENCES[comparison.verdict](thresholdPercent),
  ].join('\n')
}

/** Returns the verdict for a comment on a pull request. */
export function comparisonMarkdown(
  {
    verdict,
    cpu,
    base,
    head,
    starts,
  }: Pick<Comparison, 'verdict' | 'cpu' | 'base' | 'head' | 'starts'>,
  {
    thresholdPercent,
    runtime,
    durable,
  }: Pick<CompareOptions, 'thresholdPercent' | 'runtime' | 'durable'>,
): string {
  const where = `${runtime}${durable ? ', durable audit' : ''}`
  return [
    `**CPU of a request (${where}): ${intervalText(cpu)}** of ${starts.length} starts, ` +
      `${titleOf('head', head)} to ${titleOf('base', base)}.`,
    SENTENCES[verdict](thresholdPercent),
  ].join('\n\n')
}

const SENTENCES: Readonly<Record<Verdict, (thresholdPercent: number) => string>> = {
  ok: (percent) => `ok: HEAD takes no more than ${percent} % more CPU than BASE.`,
  regression: (percent) => `regression: HEAD takes more than ${percent} % more CPU than BASE.`,
  noisy: (percent) =>
    `noisy: the measurement cannot decide whether HEAD takes more than ${percent} % more CPU than BASE. Use more --starts, or a quieter machine.`,
}

function titleOf(name: SideName, { name: given, commit }: Revision): string {
  return `${name.toUpperCase()} ${given}${commit === undefined ? '' : ` (${commit})`}`
}

function intervalText({ median: middle, low, high, coverage }: MedianInterval): string {
  const percent = (coverage * 100).toFixed(0)
  return `${middle.toFixed(3)} (${percent} %: ${low.toFixed(3)} to ${high.toFixed(3)})`
}
