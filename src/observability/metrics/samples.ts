/** Creates the samples of the exposition from the totals in the store. */
import { METRICS, type Metric, type MetricName } from './catalogue.ts'
import { seriesName } from './counters.ts'
import type { Sample } from './exposition.ts'
import type { MetricsTotals } from './store.ts'

/**
 * The dependencies with a circuit breaker. Their series are reported even if no breaker is open.
 */
const DEPENDENCIES = ['redis', 'key_set', 'authority', 'origin']
const BREAKER_STATES = ['closed', 'half_open', 'open']
/**
 * Series that are always reported, as 0 without counts. Prometheus sees no increase in a series
 * that appears with its first count. These counts are rare, and alerts depend on them.
 */
const ALWAYS_TOLD: readonly (readonly [MetricName, ...string[]])[] = [
  ...DEPENDENCIES.flatMap((dependency) =>
    BREAKER_STATES.map((to) => ['portcullis_breaker_transitions_total', dependency, to] as const),
  ),
  ...['sent', 'spilled', 'lost'].map(
    (outcome) => ['portcullis_audit_events_total', outcome] as const,
  ),
  ...['exported', 'dropped'].map((outcome) => ['portcullis_spans_total', outcome] as const),
  ['portcullis_rate_limited_total', 'authentication_failures'],
  ['portcullis_metrics_flush_failures_total'],
  ['portcullis_metrics_dropped_total'],
]

const MS_PER_SECOND = 1_000

/**
 * Yields the samples of the totals, and of the newest audit event if `newestEventMs` is given
 * (milliseconds since the epoch). Skips series that this version does not define, which gateways of
 * another version reported.
 */
export function* samplesOf(
  { counts, isolates, open, bans, lastReportMs, overflowEvents }: MetricsTotals,
  newestEventMs: number | undefined,
): Generator<Sample> {
  for (const [metric, ...labels] of ALWAYS_TOLD) {
    if (!counts.has(seriesName(metric, labels))) yield { metric, labels, value: 0 }
  }
  for (const [series, value] of counts) {
    const sample = sampleOf(series, value)
    if (sample !== undefined) yield sample
  }
  const gauge = (metric: MetricName, value: number, ...labels: string[]) => ({
    ...{ metric, labels, value },
  })
  yield gauge('portcullis_isolates', isolates)
  for (const dependency of DEPENDENCIES)
    yield gauge('portcullis_breaker_open_isolates', open.get(dependency) ?? 0, dependency)
  yield gauge('portcullis_bans', bans)
  yield gauge('portcullis_audit_spilled_events', overflowEvents)
  if (newestEventMs !== undefined)
    yield gauge('portcullis_audit_newest_event_timestamp_seconds', newestEventMs / MS_PER_SECOND)
  if (lastReportMs !== undefined)
    yield gauge('portcullis_metrics_last_flush_timestamp_seconds', lastReportMs / MS_PER_SECOND)
}

function sampleOf(series: string, value: number): Sample | undefined {
  const [name, ...rest] = partsOf(series)
  if (name === undefined || !isMetric(name)) return undefined
  const { kind, labels: names }: Metric = METRICS[name]
  // Gauges report a current value and are not added up.
  if (kind === 'gauge') return undefined
  const labels = rest.slice(0, names.length)
  const part = rest[names.length]
  if (labels.length !== names.length || (kind === 'histogram') !== (part !== undefined))
    return undefined
  return { metric: name, labels, value, ...(part !== undefined && { part }) }
}

const isMetric = (name: string): name is MetricName => Object.hasOwn(METRICS, name)

function partsOf(series: string): readonly string[] {
  try {
    const parts: unknown = JSON.parse(series)
    return Array.isArray(parts) ? parts.map(String) : []
  } catch {
    return []
  }
}
