/** Formats the totals in the Prometheus text format, version 0.0.4. */
import {
  BUCKETS_MS,
  type FeatureMetrics,
  METRICS,
  type Metric,
  type MetricName,
} from './catalogue.ts'
import { seriesName } from './counters.ts'
import type { MetricsTotals } from './store.ts'

export const EXPOSITION_MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The dependencies with a circuit breaker. */
const DEPENDENCIES = [
  'redis',
  'key_set',
  'introspection',
  'identity_provider',
  'authority',
  'origin',
]
/**
 * Series that are always reported, as 0 without counts. Prometheus sees no increase in a series
 * that appears with its first count. These counts are rare, and alerts depend on them.
 */
const ALWAYS_REPORTED: readonly string[] = [
  ...DEPENDENCIES.flatMap((dependency) =>
    ['closed', 'half_open', 'open'].map((to) =>
      seriesName('portcullis_breaker_transitions_total', [dependency, to]),
    ),
  ),
  ...['sent', 'spilled', 'lost'].map((outcome) =>
    seriesName('portcullis_audit_events_total', [outcome]),
  ),
  ...['exported', 'dropped'].map((outcome) => seriesName('portcullis_spans_total', [outcome])),
  seriesName('portcullis_rate_limited_total', ['authentication_failures']),
  seriesName('portcullis_metrics_flush_failures_total', []),
  seriesName('portcullis_metrics_dropped_total', []),
]

/** Gauges of a runtime. */
export interface OwnGauges {
  readonly metrics: Readonly<Record<string, Metric>>
  /** What this isolate reports, as `IsolateReport.open`. */
  readonly reported: readonly string[]
  /** Returns the samples of what isolates reported: their number by name. */
  samplesOf(reported: ReadonlyMap<string, number>): Iterable<Sample>
  /** Returns what was counted since the last call, above 0, by `seriesName` of `metrics`. Default: nothing. */
  readonly counted?: () => Iterable<readonly [series: string, increase: number]>
  /** Reads what `samplesOf` returns besides, before each response. Throws `Unavailable`. Default: nothing. */
  readonly refresh?: () => Promise<void>
}

const MS_PER_SECOND = 1_000

/** For a histogram: the count of one bucket (not cumulative), or the sum in milliseconds. */
interface Sample {
  readonly metric: string
  readonly labels: readonly string[]
  /** Only for a histogram: the index of the bucket, or `sum`. */
  readonly part?: string | undefined
  readonly value: number
}

/**
 * Returns the text of the totals, and of the newest audit event if `newestEventMs` is given
 * (milliseconds since the epoch). Metrics are in the order of the catalogue, each with HELP and
 * TYPE, even without samples, and then those of features. Buckets become cumulative; milliseconds become seconds.
 */
export function exposition(
  totals: MetricsTotals,
  newestEventMs: number | undefined,
  ofFeatures: FeatureMetrics = {},
  own?: OwnGauges,
): string {
  const metrics = new Map<string, Metric>(
    Object.entries({ ...METRICS, ...own?.metrics, ...ofFeatures }),
  )
  const declared = [...metrics].flatMap(([name, { series = [] }]) =>
    series.map((labels) => seriesName(name, labels)),
  )
  const samples = [
    ...listSamples(totals, newestEventMs, metrics, declared),
    ...(own?.samplesOf(totals.open) ?? []),
  ]
  const byMetric = Map.groupBy(samples, ({ metric }) => metric)
  let text = ''
  for (const [name, metric] of metrics) {
    text += `# HELP ${name} ${metric.help}\n# TYPE ${name} ${metric.kind}\n`
    const own = byMetric.get(name) ?? []
    text += metric.kind === 'histogram' ? histograms(name, metric, own) : simple(name, metric, own)
  }
  return text
}

function* listSamples(
  { counts, isolates, open, bans, lastReportMs, overflowEvents }: MetricsTotals,
  newestEventMs: number | undefined,
  metrics: ReadonlyMap<string, Metric>,
  declared: readonly string[],
): Generator<Sample> {
  const zeros = [...ALWAYS_REPORTED, ...declared].map((series) => [series, 0] as const)
  for (const [series, value] of new Map([...zeros, ...counts])) {
    const sample = createSample(series, value, metrics)
    if (sample !== undefined) yield sample
  }
  const gauge = (metric: MetricName, value: number, ...labels: string[]) => {
    return { metric, labels, value }
  }
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

/** Returns undefined for a series that only another version of the gateway defines. */
function createSample(
  series: string,
  value: number,
  metrics: ReadonlyMap<string, Metric>,
): Sample | undefined {
  const [metric = '', ...rest] = partsOf(series)
  const defined = metrics.get(metric)
  if (defined === undefined) return undefined
  const { kind, labels: names } = defined
  // Gauges report a current value and are not added up.
  if (kind === 'gauge') return undefined
  if (rest.length !== names.length + (kind === 'histogram' ? 1 : 0)) return undefined
  return { metric, labels: rest.slice(0, names.length), value, part: rest[names.length] }
}

function partsOf(series: string): readonly string[] {
  try {
    const parts: unknown = JSON.parse(series)
    return Array.isArray(parts) ? parts.map(String) : []
  } catch {
    return []
  }
}

function simple(name: string, metric: Metric, samples: readonly Sample[]): string {
  return samples.map(({ labels, value }) => line(name, metric.labels, labels, value)).join('')
}

function histograms(name: string, { labels: names }: Metric, samples: readonly Sample[]): string {
  let text = ''
  for (const parts of Map.groupBy(samples, ({ labels }) => labels.join('\n')).values()) {
    const labels = parts[0]?.labels ?? []
    const values = new Map(parts.map(({ part, value }) => [part, value]))
    let count = 0
    for (let at = 0; at <= BUCKETS_MS.length; at++) {
      count += values.get(String(at)) ?? 0
      const bound = BUCKETS_MS[at]
      const le = bound === undefined ? '+Inf' : String(bound / MS_PER_SECOND)
      text += line(`${name}_bucket`, [...names, 'le'], [...labels, le], count)
    }
    text += line(`${name}_sum`, names, labels, (values.get('sum') ?? 0) / MS_PER_SECOND)
    text += line(`${name}_count`, names, labels, count)
  }
  return text
}

function line(
  name: string,
  labelNames: readonly string[],
  labels: readonly string[],
  value: number,
): string {
  const pairs = labelNames.map((label, at) => `${label}="${escaped(labels[at] ?? '')}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

/** Escapes the three characters that are not allowed in a label value. */
function escaped(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`))
}
