/** The catalogue of all metrics: name, kind, labels and help text. */

export type MetricKind = 'counter' | 'gauge' | 'histogram'

export interface Metric {
  readonly kind: MetricKind
  readonly help: string
  readonly labels: readonly string[]
}

/**
 * Metrics by name. Label values come from bounded lists: routes of the policy, codes of reasons,
 * names of limits. They never contain text from a caller. Counters and histograms are the sum over
 * all isolates of all gateways on one Redis.
 */
export const METRICS = {
  portcullis_requests_total: {
    kind: 'counter',
    help:
      'Requests that were decided, by route pattern (none: no route has the path), code of ' +
      'the reason, and status sent.',
    labels: ['method', 'route', 'decision', 'reason', 'status'],
  },
  portcullis_request_duration_seconds: {
    kind: 'histogram',
    help:
      'Time from the first stage to the response, headers of the origin included. The clock ' +
      'of Workers stops while they compute, so this is time spent waiting.',
    labels: ['method', 'route'],
  },
  portcullis_stage_duration_seconds: {
    kind: 'histogram',
    help: 'Time in each stage of the pipeline. Stages that only compute take 0 on ' + 'Workers.',
    labels: ['stage'],
  },
  portcullis_rate_limited_total: {
    kind: 'counter',
    help:
      'Requests refused with 429, by the name of the limit; authentication_failures: ' +
      'credentials that were not checked.',
    labels: ['limit'],
  },
  portcullis_limits_uncounted_total: {
    kind: 'counter',
    help: 'Limits that could not be counted and admitted the request (onUnavailable: allow).',
    labels: ['limit'],
  },
  portcullis_observed_refusals_total: {
    kind: 'counter',
    help: 'Refusals that rules in observe mode only recorded, by the code of the reason.',
    labels: ['reason'],
  },
  portcullis_bans: {
    kind: 'gauge',
    help: 'Bans in force, by operators and by the policy, including bans in observe mode.',
    labels: [],
  },
  portcullis_cache_requests_total: {
    kind: 'counter',
    help: 'Look-ups in the caches of isolates.',
    labels: ['cache', 'result'],
  },
  portcullis_redis_calls_total: {
    kind: 'counter',
    help: 'Calls to Redis by requests and operators, by outcome.',
    labels: ['outcome'],
  },
  portcullis_local_admissions_total: {
    kind: 'counter',
    help: 'Requests that an isolate admitted without a call to Redis.',
    labels: [],
  },
  portcullis_leased_units_total: {
    kind: 'counter',
    help:
      'Units of limits that isolates leased (granted), and the unused units that they returned ' +
      '(returned).',
    labels: ['outcome'],
  },
  portcullis_admission_refreshes_total: {
    kind: 'counter',
    help:
      'Calls to Redis after responses that renew the view and the leases of an isolate: ' +
      'answered (refreshed) or failed.',
    labels: ['outcome'],
  },
  portcullis_breaker_transitions_total: {
    kind: 'counter',
    help: 'Transitions of the circuit breakers of isolates.',
    labels: ['dependency', 'to'],
  },
  portcullis_breaker_open_isolates: {
    kind: 'gauge',
    help:
      'Isolates whose breaker was not closed when they last reported, at most 35 s ago. An ' +
      'isolate that cannot reach Redis cannot report.',
    labels: ['dependency'],
  },
  portcullis_isolates: {
    kind: 'gauge',
    help: 'Isolates that reported in the last 35 s.',
    labels: [],
  },
  portcullis_audit_events_total: {
    kind: 'counter',
    help:
      'Audit events that were sent to the queue (sent), stored in Redis to be sent later ' +
      '(spilled), or lost.',
    labels: ['outcome'],
  },
  portcullis_audit_spilled_events: {
    kind: 'gauge',
    help: 'Audit events that are stored in Redis until the queue accepts them.',
    labels: [],
  },
  portcullis_audit_newest_event_timestamp_seconds: {
    kind: 'gauge',
    help:
      'Time of the newest event in the audit database. Absent if the gateway has no audit ' +
      'database, or if it is empty or does not respond.',
    labels: [],
  },
  portcullis_spans_total: {
    kind: 'counter',
    help: 'Spans that were exported to the trace collector, or dropped.',
    labels: ['outcome'],
  },
  portcullis_metrics_flush_failures_total: {
    kind: 'counter',
    help: 'Reports of isolates that Redis did not accept. They are sent again.',
    labels: [],
  },
  portcullis_metrics_dropped_total: {
    kind: 'counter',
    help: 'Counts that were dropped because their report was too old or had too many series.',
    labels: [],
  },
  portcullis_metrics_last_flush_timestamp_seconds: {
    kind: 'gauge',
    help: 'Time of the last report of any isolate.',
    labels: [],
  },
} as const satisfies Readonly<Record<string, Metric>>

export type MetricName = keyof typeof METRICS

/**
 * Upper bounds of the buckets of every histogram, in milliseconds. A bucket without a bound
 * follows.
 */
export const BUCKETS_MS = [
  0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
] as const

/** Returns the index of the bucket of a duration, from 0 to `BUCKETS_MS.length`. */
export function bucketOf(ms: number): number {
  let at = 0
  while (at < BUCKETS_MS.length && ms > (BUCKETS_MS[at] as number)) at++
  return at
}
