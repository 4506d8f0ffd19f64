/** Port: where isolates add up what they have counted. */
import type { Deltas } from './counters.ts'

/** What an isolate reports. */
export interface IsolateReport extends Deltas {
  readonly isolate: string
  /** Counts from 1; each is taken once. */
  readonly number: number
  /** Dependencies whose breakers are not closed. */
  readonly open: readonly string[]
  readonly nowMs: number
}

/** What all isolates have reported, and what is known beside that. */
export interface MetricsTotals {
  /** By name of the series, as `seriesName` makes it. */
  readonly counts: ReadonlyMap<string, number>
  /** Isolates that reported lately. */
  readonly isolates: number
  /** Of them, by dependency, those whose breaker was not closed. */
  readonly open: ReadonlyMap<string, number>
  /** Milliseconds since the epoch; undefined: nobody has reported. */
  readonly lastReportMs: number | undefined
  /** Bans that hold. */
  readonly bans: number
  /** Audit events that wait for the queue. */
  readonly spilledEvents: number
}

/** Both reject with `Unavailable` when the store does not answer. */
export interface MetricsStore {
  /** Adds a report, whatever became of its sending before, once. One call. */
  add(report: IsolateReport): Promise<void>
  /** One call. */
  read(nowMs: number): Promise<MetricsTotals>
}
