export interface Metric {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
  /** The label values of series that are shown from the start, as 0 without counts. Default: none. */
  readonly series?: readonly (readonly string[])[]
}

/** A counter that a feature declares. */
export interface FeatureMetric extends Metric {
  readonly kind: 'counter'
  /** The label values of all its series. They are reported from the start, as 0 without counts. */
  readonly series: readonly (readonly string[])[]
}

export type FeatureMetrics = Readonly<Record<string, FeatureMetric>>

const metricOf =
  (kind: Metric['kind']) =>
  (labels: readonly string[], help: string): Metric => ({ kind, labels, help })
const counter = metricOf('counter')
const gauge = metricOf('gauge')
const histogram = metricOf('histogram')

/**
 * All metrics by name. Label values come from bounded lists: routes of the policy, codes of reasons,
 * names of limits. They never contain text from a caller. Counters and histograms are the sum over
 * all isolates of all gateways on one Redis.
 */
export const METRICS = {
  portcullis_requests_total: counter(
    ['method', 'route', 'decision', 'reason', 'status'],
    'Requests that were decided, by host and pattern of the route (none: no route has the path), ' +
      'code of the reason, and status sent.',
  ),
  portcullis_request_duration_seconds: histogram(
    ['method', 'route'],
    'Time from the first stage to the response, headers of the origin included. The clock of ' +
      'Workers stops while they compute, so this is time spent waiting.',
  ),
  portcullis_stage_duration_seconds: histogram(
    ['stage'],
    'Time in each stage of the pipeline. Stages that only compute take 0 on Workers.',
  ),
  portcullis_origin_duration_seconds: histogram(
    ['origin', 'status'],
    'Time of an origin of origins() to its headers, or to its failure, by the status sent.',
  ),
  portcullis_rate_limited_total: counter(
    ['limit'],
    'Requests refused with 429, by the name of the limit; authentication_failures: ' +
      'credentials that were not checked.',
  ),
  portcullis_limits_uncounted_total: counter(
    ['limit'],
    'Limits that could not be counted and admitted the request (onUnavailable: allow).',
  ),
  portcullis_observed_refusals_total: counter(
    ['reason'],
    'Refusals that rules in observe mode only recorded, by the code of the reason.',
  ),
  portcullis_bans: gauge(
    [],
    'Bans in force, by operators and by the policy, including bans in observe mode.',
  ),
  portcullis_cache_requests_total: counter(
    ['cache', 'result'],
    'Look-ups in the caches of isolates.',
  ),
  portcullis_cache_evictions_total: counter(
    ['cache'],
    'Valid entries that left a cache of an isolate because it was full: tokens and references ' +
      'are bounded by tokenCacheBytes.',
  ),
  portcullis_redis_calls_total: counter(
    ['outcome'],
    'Calls to Redis by requests and operators, by outcome.',
  ),
  portcullis_local_admissions_total: counter(
    [],
    'Requests that an isolate admitted without a call to Redis.',
  ),
  portcullis_leased_units_total: counter(
    ['outcome'],
    'Units of limits that isolates leased (granted), and the unused units that they returned ' +
      '(returned).',
  ),
  portcullis_admission_refreshes_total: counter(
    ['outcome'],
    'Calls to Redis after responses that renew the view and the leases of an isolate: ' +
      'answered (refreshed) or failed.',
  ),
  portcullis_breaker_transitions_total: counter(
    ['dependency', 'to'],
    'Transitions of the circuit breakers of isolates.',
  ),
  portcullis_breaker_open_isolates: gauge(
    ['dependency'],
    'Isolates whose breaker was not closed when they last reported, at most 35 s ago. An ' +
      'isolate that cannot reach Redis cannot report.',
  ),
  portcullis_isolates: gauge([], 'Isolates that reported in the last 35 s.'),
  portcullis_audit_events_total: counter(
    ['outcome'],
    'Audit events that were sent to the queue (sent), stored in Redis to be sent later ' +
      '(spilled), or lost. On Node also those of the sent ones that a disk has stored (spooled).',
  ),
  portcullis_audit_spilled_events: gauge(
    [],
    'Audit events that are stored in Redis until the queue accepts them.',
  ),
  portcullis_audit_newest_event_timestamp_seconds: gauge(
    [],
    'Time of the newest event in the audit database. Absent if the gateway has no audit ' +
      'database, or if it is empty or does not respond.',
  ),
  portcullis_spans_total: counter(
    ['outcome'],
    'Spans that were exported to the trace collector, or dropped.',
  ),
  portcullis_metrics_flush_failures_total: counter(
    [],
    'Reports of isolates that Redis did not accept. They are sent again.',
  ),
  portcullis_metrics_dropped_total: counter(
    [],
    'Counts that were dropped because their report was too old or had too many series.',
  ),
  portcullis_metrics_last_flush_timestamp_seconds: gauge(
    [],
    'Time of the last report of any isolate.',
  ),
} satisfies Readonly<Record<string, Metric>>

export type MetricName = keyof typeof METRICS

/** Upper bounds of the buckets of every histogram, in milliseconds. A last bucket has no bound. */
export const BUCKETS_MS = [
  0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
] as const
