/** The Prometheus text format, version 0.0.4. */
import { BUCKETS_MS, METRICS, type Metric, type MetricName } from './catalogue.ts'

export const EXPOSITION_MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * One value of a metric. For a histogram: the count of one bucket (not cumulative) or the sum (ms).
 */
export interface Sample {
  readonly metric: MetricName
  readonly labels: readonly string[]
  /** Only for a histogram: an index of `BUCKETS_MS`, the length of `BUCKETS_MS`, or `sum`. */
  readonly part?: string
  readonly value: number
}

const MS_PER_SECOND = 1_000

/**
 * Formats samples as text. Metrics are in the order of the catalogue, each with HELP and TYPE, even
 * without samples. Buckets become cumulative; milliseconds become seconds.
 */
export function exposition(samples: Iterable<Sample>): string {
  const byMetric = Map.groupBy(samples, ({ metric }) => metric)
  let text = ''
  for (const [name, metric] of Object.entries(METRICS) as [MetricName, Metric][]) {
    text += `# HELP ${name} ${metric.help}\n# TYPE ${name} ${metric.kind}\n`
    const own = byMetric.get(name) ?? []
    text += metric.kind === 'histogram' ? histograms(name, metric, own) : simple(name, metric, own)
  }
  return text
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
