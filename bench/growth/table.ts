/** A growth table: what a request costs as one size grows, and the factor per decade. Pure. */
import type { Contestant, Summary } from '../measure/rounds.ts'
import { ratioOf, rounded } from '../measure/statistics.ts'
import { type Figure, figure, ratioFigure, type Table } from '../scenario.ts'
import type { BenchTokens } from '../stack/credentials.ts'
import type { Ground, StartContext } from '../stack/gateway.ts'

export interface Stage extends StartContext {
  readonly ground: Ground
  readonly tokens: BenchTokens
  readonly connections: number
}

/** One thing that grows. */
export interface Subject {
  /** Kebab-case; for `--tables` and in the names of figures. */
  readonly id: string
  /** Such as `routes of the policy`. */
  readonly title: string
  readonly sizes: readonly number[]
  /** The aim for the CPU of a request at the largest size to that at the smallest. */
  readonly aim?: Figure['aim']
  /** Returns the reason why a size cannot be measured here; undefined: it can. */
  readonly obstacle?: (size: number) => string | undefined
  /** Starts a gateway of this size. All sizes of a table are measured in turn. */
  start(stage: Stage, size: number): Promise<Contestant>
}

/** What was measured at a size. */
export interface Grown {
  readonly size: number
  readonly summary: Summary
  /** Resident memory of the process, in MB. */
  readonly residentMb: number
}

const DIGITS = 3

/** Returns `ratio` as a factor for each tenfold size: the same factor several times gives `ratio`. */
export function perDecade(ratio: number, from: number, to: number): number {
  const decades = Math.log10(to / from)
  return rounded(ratio ** (1 / decades), DIGITS)
}

type Key = 'cpuMicros' | 'requestsPerSecond'

const factor = (key: Key, from: Grown, to: Grown): number =>
  perDecade(ratioOf(to.summary.rounds, from.summary.rounds, key), from.size, to.size)

/** Returns the factors from the smallest to the largest size. Empty for fewer than two sizes. */
export function growthFigures(
  { id, title, aim }: Subject,
  grown: readonly Grown[],
): readonly Figure[] {
  const [first, last] = [grown[0], grown.at(-1)]
  if (first === undefined || last === undefined || first === last) return []
  const range = `${first.size.toLocaleString('en')} to ${last.size.toLocaleString('en')} ${title}`
  return [
    ratioFigure(
      `${id}-cpu-ratio`,
      `${range}: CPU of a request, ratio`,
      [last.summary.rounds, first.summary.rounds, 'cpuMicros'],
      aim && { aim },
    ),
    figure(
      `${id}-cpu-per-decade`,
      `${range}: CPU of a request, factor per decade`,
      factor('cpuMicros', first, last),
      'ratio',
    ),
    figure(
      `${id}-rps-per-decade`,
      `${range}: requests a second, factor per decade`,
      factor('requestsPerSecond', first, last),
      'ratio',
    ),
  ]
}

/** Returns a row for each size, with the factor per decade since the row before. */
export function growthTable({ title }: Subject, grown: readonly Grown[]): Table {
  return {
    title: `By ${title}`,
    headings: [
      ...[title, 'req/s', 'CPU us', 'p99 ms', 'resident MB'],
      ...['CPU, per decade', 'req/s, per decade'],
    ],
    rows: grown.map((one, index) => {
      const before = grown[index - 1]
      const since = (key: Key) => (before === undefined ? '' : factor(key, before, one).toFixed(2))
      return [
        one.size.toLocaleString('en'),
        one.summary.requestsPerSecond.toFixed(0),
        one.summary.cpuMicros.toFixed(0),
        one.summary.p99Ms.toFixed(2),
        one.residentMb.toFixed(0),
        since('cpuMicros'),
        since('requestsPerSecond'),
      ]
    }),
  }
}
