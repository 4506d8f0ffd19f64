/** What the comparison says at its end. */
import { table } from '../report.ts'
import { median } from '../statistics.ts'
import type { MeasuredPairs, Slices } from './measure-pairs.ts'
import type { CompareOptions } from './options.ts'
import type { Revision } from './revision.ts'
import type { SideName } from './sides.ts'
import { type MedianInterval, medianInterval, type Verdict, verdictOf } from './verdict.ts'

/** What is written, and printed as a table. */
export interface Comparison extends MeasuredPairs {
  readonly base: Revision
  readonly head: Revision
  readonly verdict: Verdict
  readonly cpu: MedianInterval
  /** For orientation: it depends on how fast load, origin and Redis are, too. */
  readonly throughput: MedianInterval
}

/** Judges what was measured. */
export function compared(
  revisions: Readonly<Record<SideName, Revision>>,
  measured: MeasuredPairs,
  { thresholdPercent }: Pick<CompareOptions, 'thresholdPercent'>,
): Comparison {
  const cpu = medianInterval(measured.pairs.map(({ cpuRatio }) => cpuRatio))
  return {
    ...revisions,
    verdict: verdictOf(cpu, 1 + thresholdPercent / 100),
    cpu,
    throughput: medianInterval(measured.pairs.map(({ throughputRatio }) => throughputRatio)),
    ...measured,
  }
}

/** A table of medians, the ratios with their intervals, and the verdict in a sentence. */
export function comparisonText(
  comparison: Comparison,
  {
    thresholdPercent,
    slowDownPercent,
  }: Pick<CompareOptions, 'thresholdPercent' | 'slowDownPercent'>,
): string {
  const { pairs, redisCalls, cpu, throughput, repeats } = comparison
  const rowOf = (name: SideName) => {
    const middle = (key: keyof Slices) => median(pairs.map((pair) => pair[name][key]))
    return [
      titleOf(name, comparison[name]),
      middle('cpuMicros').toFixed(1),
      middle('requestsPerSecond').toFixed(0),
      redisCalls[name].toFixed(2),
    ]
  }
  const others = Math.max(...pairs.map(({ otherCores }) => otherCores))
  return [
    table(['', 'CPU us', 'req/s', 'Redis calls'], [rowOf('base'), rowOf('head')]),
    '',
    `CPU for each request, HEAD to BASE: ${intervalText(cpu)}, of ${pairs.length} pairs.`,
    `Requests a second, HEAD to BASE:    ${intervalText(throughput)}; not judged.`,
    `Other processes used up to ${others.toFixed(1)} cores meanwhile.`,
    ...(repeats === 0 ? [] : [`${repeats} measurements were spoiled by them, and repeated.`]),
    ...(slowDownPercent === 0
      ? []
      : [`HEAD was made to burn ${slowDownPercent} % more, so this says nothing of its code.`]),
    '',
    SENTENCES[comparison.verdict](thresholdPercent),
  ].join('\n')
}

const SENTENCES: Readonly<Record<Verdict, (thresholdPercent: number) => string>> = {
  ok: (percent) => `ok: HEAD takes no more than ${percent} % more CPU than BASE.`,
  regression: (percent) => `regression: HEAD takes more than ${percent} % more CPU than BASE.`,
  noisy: (percent) =>
    `noisy: whether HEAD takes more than ${percent} % more CPU than BASE cannot be told. Try more --pairs, or a quieter machine.`,
}

function titleOf(name: SideName, { name: asked, commit }: Revision): string {
  return `${name.toUpperCase()} ${asked}${commit === undefined ? '' : ` (${commit})`}`
}

function intervalText({ median: middle, low, high, coverage }: MedianInterval): string {
  const percent = (coverage * 100).toFixed(0)
  return `${middle.toFixed(3)} (${percent} %: ${low.toFixed(3)} to ${high.toFixed(3)})`
}
