/** Types of scenarios and their results. */
import type { Shutdown } from '../dev/start/shutdown.ts'
import { ratioSpreadOf } from './measure/statistics.ts'
import type { Detail } from './options.ts'
import type { Figure, Measured as MeasuredScenario, Suite } from './report/schema.ts'
import type { Effort, Runtime } from './runtimes.ts'

/** A scenario: the only export of a file in `bench/scenarios/`. */
export interface Scenario {
  /** The name of the file without `.ts`; for `--only`. */
  readonly id: string
  readonly title: string
  /** What is measured, and how. One or two sentences. */
  readonly measures: string
  /** The runtimes. A quick run uses only the first. */
  readonly runtimes: readonly Runtime[]
  /** Approximate duration under one runtime. 0: not in a quick run of all scenarios. */
  readonly seconds: Readonly<Record<Effort, number>>
  /** Runs the scenario. Throws an `Error` of one line for the first wrong response. */
  run(context: ScenarioContext): Promise<ScenarioResult>
}

export interface ScenarioContext {
  readonly effort: Effort
  readonly runtime: Runtime
  /** Temporary directory for this scenario only; removed afterwards. */
  readonly directory: string
  /** Processes are deferred here, and end before the next scenario begins. */
  readonly shutdown: Shutdown
  /** Receives one line about the next step. */
  readonly onProgress: (what: string) => void
  /** Given options of the measurements. */
  readonly detail: Detail
}

/** Creates a figure, optionally with comparable published figures and a target. */
export const figure = (
  id: string,
  title: string,
  value: number,
  unit: Unit,
  more: Pick<Figure, 'beside' | 'aim' | 'quartiles'> = {},
): Figure => ({ id, title, value, unit, ...more })

type Rounds<Key extends string> = readonly Readonly<Record<Key, number>>[]

/** Creates the figure of the ratios of each round to the same round of another contestant. */
export function ratioFigure<Key extends string>(
  id: string,
  title: string,
  [rounds, base, key]: readonly [rounds: Rounds<Key>, base: Rounds<Key>, key: Key],
  more: Pick<Figure, 'beside' | 'aim'> = {},
): Figure {
  const { median, quartiles } = ratioSpreadOf(rounds, base, key)
  return figure(id, title, median, 'ratio', { ...more, quartiles })
}

export type { Figure, Table } from './report/schema.ts'
export type Unit = Figure['unit']

/** One scenario in a results file. `details` is other data, such as the single rounds. */
export type Measured = MeasuredScenario & { readonly details?: object }

export type ScenarioResult = Omit<Measured, 'scenario' | 'title' | 'runtime' | 'tookSeconds'>

/** `bench/results/<date>-<effort>.json`. */
export type SuiteResult = Omit<Suite, 'measured'> & { readonly measured: readonly Measured[] }
