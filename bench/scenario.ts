/** Types of scenarios and their results. */
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Detail, Runtime } from './options.ts'
import type { PublishedId } from './published.ts'

/** `quick`: the whole suite within three minutes; `full`: as long as the figures need. */
export type Effort = 'quick' | 'full'

/** A scenario: the only export of a file in `bench/scenarios/`. */
export interface Scenario {
  /** The name of the file without `.ts`; for `--only`. */
  readonly id: string
  readonly title: string
  /** What is measured, and how. One or two sentences. */
  readonly measures: string
  /** The published figures of comparable work. */
  readonly answers: readonly PublishedId[]
  /** Conditions that fail the measurement, one sentence each. */
  readonly asserts: readonly string[]
  /** The runtimes. A quick run uses only the first. */
  readonly runtimes: readonly Runtime[]
  /**
   * Approximate duration under one runtime, for the progress and `--list`. 0: a quick run includes
   * the scenario only if it is named.
   */
  readonly seconds: Readonly<Record<Effort, number>>
  /**
   * Runs the scenario. Throws an `Error` of one line for the first wrong response: the run then has
   * no result.
   */
  run(context: ScenarioContext): Promise<ScenarioResult>
}

export interface ScenarioContext {
  readonly effort: Effort
  readonly runtime: Runtime
  /** Temporary directory for this scenario only; removed afterwards. */
  readonly directory: string
  /**
   * Processes are deferred here when they start. The scenario closes them at its end; the rest is
   * closed before the next scenario begins.
   */
  readonly shutdown: Shutdown
  /** Receives one line about the next step. */
  readonly onProgress: (what: string) => void
  /** Options of `layers` and `tokens`. Undefined: the defaults of the effort. */
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

export interface Figure {
  /** Unique in its scenario, kebab-case, and the same in every run. */
  readonly id: string
  readonly title: string
  readonly value: number
  readonly unit: Unit
  /** The published figures that it is compared with. */
  readonly beside?: readonly PublishedId[]
  /** The target of the value, if there is one. It is shown and never fails a run. */
  readonly aim?: { readonly at: 'most' | 'least'; readonly value: number }
}

export interface Plot {
  readonly id: string
  readonly title: string
  /** `stacked`: one stacked bar for each category. */
  readonly kind: 'line' | 'bar' | 'stacked'
  readonly x: { readonly title: string; readonly log?: boolean }
  readonly y: { readonly title: string; readonly log?: boolean }
  /** Categories of the bars, in order; undefined for lines. */
  readonly categories?: readonly string[]
  /** Lines: `[x, y]`. Bars: `y` for each category, null if there is none. */
  readonly series: readonly {
    readonly name: string
    readonly points: readonly (readonly [number, number])[] | readonly (number | null)[]
  }[]
}

/** A condition that was checked during the measurement. If it fails, there is no result. */
export interface Check {
  /** Such as `answers that were wrong`. */
  readonly what: string
  /** Such as `0 of 182,204`. */
  readonly seen: string
}

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
  /** What was left out and why, how noisy the machine was, and other notes for the reader. */
  readonly notes?: readonly string[]
  /** Other data, such as the single rounds. */
  readonly details?: object
}

export interface Measured extends ScenarioResult {
  readonly scenario: string
  readonly title: string
  readonly runtime: Runtime
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
  /** Scenarios that failed or could not run, with the reason in one line. */
  readonly failed: readonly {
    readonly scenario: string
    readonly runtime: Runtime
    readonly why: string
  }[]
}
