/** What a scenario of the suite is, and what it hands to results and report. */
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Detail, Runtime } from './options.ts'
import type { PublishedId } from './published.ts'

/** `quick`: the whole suite within three minutes; `full`: as long as the figures need. */
export type Effort = 'quick' | 'full'

/** One file of `bench/scenarios/`, and the only thing that it exports. */
export interface Scenario {
  /** The name of its file, without `.ts`; for `--only`. */
  readonly id: string
  readonly title: string
  /** One or two sentences: what is measured, and how. */
  readonly measures: string
  /** The published figures that this measures the same kind of work as. */
  readonly answers: readonly PublishedId[]
  /** One sentence each: what makes this fail while it measures. */
  readonly asserts: readonly string[]
  /** Where it runs; a quick run takes the first only. */
  readonly runtimes: readonly Runtime[]
  /**
   * About how long it takes under one runtime, for the progress and for `--list`. 0: a quick run of
   * everything leaves it out, and one that names it does not.
   */
  readonly seconds: Readonly<Record<Effort, number>>
  /** Throws an `Error` of one line as soon as anything answers wrong: then nothing was measured. */
  run(context: ScenarioContext): Promise<ScenarioResult>
}

export interface ScenarioContext {
  readonly effort: Effort
  readonly runtime: Runtime
  /** Of nobody else; removed afterwards. */
  readonly directory: string
  /**
   * Processes are deferred here as they start, and closed by the scenario when it is done; what is
   * left is closed before the next scenario begins.
   */
  readonly shutdown: Shutdown
  /** One line about what happens next. */
  readonly onProgress: (what: string) => void
  /** What was asked of `layers` and `tokens`; undefined: what is usual for the effort. */
  readonly detail?: Detail
}

export type Unit =
  | 'ms'
  | 'us'
  | 's'
  | '1/s'
  | '%'
  | 'ratio'
  | 'bytes'
  | 'KB'
  | 'MB'
  | 'MB/min'
  | 'cores'
  | 'count'

/** One number that was measured. */
export interface Figure {
  /** Unique in its scenario, kebab-case, the same in every run. */
  readonly id: string
  readonly title: string
  readonly value: number
  readonly unit: Unit
  /** The published figures that it stands beside. */
  readonly beside?: readonly PublishedId[]
  /** What the value is to be, where there is an aim: shown, and never fails a run. */
  readonly aim?: { readonly at: 'most' | 'least'; readonly value: number }
}

/** A plot. */
export interface Plot {
  readonly id: string
  readonly title: string
  /** `stacked`: bars on top of each other, a bar for each category. */
  readonly kind: 'line' | 'bar' | 'stacked'
  readonly x: { readonly title: string; readonly log?: boolean }
  readonly y: { readonly title: string; readonly log?: boolean }
  /** Categories of the bars, in order; undefined for lines. */
  readonly categories?: readonly string[]
  /** A line: `[x, y]`. Bars: `y` for each category; null where there is none. */
  readonly series: readonly {
    readonly name: string
    readonly points: readonly (readonly [number, number])[] | readonly (number | null)[]
  }[]
}

/** One thing that was looked at while measuring, and held: else there would be no result. */
export interface Check {
  /** Such as `answers that were wrong`. */
  readonly what: string
  /** Such as `0 of 182,204`. */
  readonly seen: string
}

/** A table for the terminal and the report. */
export interface Table {
  readonly title: string
  readonly headings: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export interface ScenarioResult {
  readonly figures: readonly Figure[]
  readonly checks: readonly Check[]
  readonly plots?: readonly Plot[]
  readonly tables?: readonly Table[]
  /** What was left out and why, how noisy the machine was, what a reader has to know. */
  readonly notes?: readonly string[]
  /** Anything else worth keeping, such as the single rounds. */
  readonly details?: object
}

/** One scenario in a file of results. */
export interface Measured extends ScenarioResult {
  readonly scenario: string
  readonly title: string
  readonly runtime: Runtime
  /** How long it took, seconds. */
  readonly tookSeconds: number
}

/** `bench/results/<date>-<effort>.json`. */
export interface SuiteResult {
  readonly benchmark: 'suite'
  readonly effort: Effort
  readonly date: string
  readonly command: string
  readonly commit: { readonly id: string; readonly changed: boolean }
  readonly machine: object
  readonly versions: Readonly<Record<string, string>>
  readonly redis: string
  readonly measured: readonly Measured[]
  /** Scenarios that failed or could not run, with the one line that says why. */
  readonly failed: readonly {
    readonly scenario: string
    readonly runtime: Runtime
    readonly why: string
  }[]
}
