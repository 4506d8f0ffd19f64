export interface IsolateReport {
  /** The amount to add to each series, above 0, by `seriesName`. */
  readonly counts: ReadonlyMap<string, number>
  readonly isolate: string
  /** Number of the report, from 1. Each number is applied once. */
  readonly number: number
  /** Dependencies with a circuit breaker that is not closed, and what `OwnGauges` report. No spaces. */
  readonly open: readonly string[]
  readonly nowMs: number
}

/** The totals of all isolates, and values that the store reads directly. */
export interface MetricsTotals {
  /** By `seriesName`. */
  readonly counts: ReadonlyMap<string, number>
  /** Isolates with a recent report. */
  readonly isolates: number
  /** Number of these isolates by the names that they reported as {@link IsolateReport.open}. */
  readonly open: ReadonlyMap<string, number>
  /** Milliseconds since the epoch; undefined if no isolate reported. */
  readonly lastReportMs: number | undefined
  /** Bans in force. */
  readonly bans: number
  /** Audit events that wait for the queue. */
  readonly overflowEvents: number
}

/** Port: stores the metric totals. Throws `Unavailable` if the store does not respond. */
export interface MetricsStore {
  /** Adds a report exactly once, even if it is sent again. */
  add(report: IsolateReport): Promise<void>
  read(nowMs: number): Promise<MetricsTotals>
}
