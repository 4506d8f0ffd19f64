import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parser } from '@prometheus-io/lezer-promql'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { METRICS, type Metric } from '../../src/observability/metrics/catalogue.ts'
import { MASTER_METRICS } from '../../src/runtimes/node/redis-gauges.ts'
import { faultOf } from '../docs/link-faults.ts'
import { ROOT } from '../harness/process.ts'
import { hasPromtool, promtool } from '../observability/metrics/text.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}
interface AlertCase {
  readonly alert_rule_test: readonly {
    readonly alertname: string
    readonly exp_alerts: readonly object[]
  }[]
  readonly input_series: readonly { readonly series: string }[]
}
interface Panel {
  readonly type: string
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const read = (name: string) => readFileSync(join(ROOT, 'ops', name), 'utf8')
const rules: readonly Rule[] = parse(read('alerts.yml')).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
)
const cases: readonly AlertCase[] = parse(read('alerts.test.yml')).tests
const dashboard: { panels: readonly Panel[] } = JSON.parse(read('dashboard.json'))
/** Replaces Grafana's variables where PromQL expects a duration. */
const shown = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '5m') })),
)

/** Names of samples, and the labels of each. */
const samples = new Map<string, readonly string[]>()
for (const [name, { kind, labels }] of Object.entries({ ...METRICS, ...MASTER_METRICS }) as [
  string,
  Metric,
][]) {
  if (kind !== 'histogram') samples.set(name, labels)
  else {
    samples.set(`${name}_bucket`, [...labels, 'le'])
    samples.set(`${name}_sum`, labels)
    samples.set(`${name}_count`, labels)
  }
}
/** Labels that `label_replace` creates in the dashboard. */
const MADE_LABELS = ['class']

/** The parts of a PromQL expression, by the grammar of Prometheus. */
interface Expression {
  /** Positions of syntax errors; empty for a valid expression. */
  readonly mistakes: readonly string[]
  /** Names of metrics. */
  readonly metrics: readonly string[]
  /** Names of labels in matchers, groupings and `label_replace`. */
  readonly labels: readonly string[]
}

function expressionOf(text: string): Expression {
  const mistakes: string[] = []
  const metrics: string[] = []
  const labels: string[] = []
  parser.parse(text).iterate({
    enter({ name, from, to, type, node }) {
      const part = text.slice(from, to)
      if (type.isError) mistakes.push(`${from}: ${part}`)
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') metrics.push(part)
      if (name === 'LabelName') labels.push(part)
    },
  })
  return { mistakes, metrics, labels }
}

test('the parser distinguishes valid from invalid expressions', () => {
  expect(expressionOf('sum by (a) (rate(b{c="d"}[5m])) > 1')).toEqual({
    mistakes: [],
    metrics: ['b'],
    labels: ['a', 'c'],
  })
  expect(expressionOf('sum by a (rate(b[5m])').mistakes).not.toEqual([])
})

describe.each([...rules.map(({ alert, expr }) => ({ title: alert, expr })), ...shown])(
  '$title: $expr',
  ({ expr }) => {
    const { mistakes, metrics, labels } = expressionOf(expr)

    test('uses only metrics and labels that exist', () => {
      expect(mistakes).toEqual([])
      expect(metrics.length).toBeGreaterThan(0)
      expect(metrics.filter((name) => !samples.has(name))).toEqual([])
      const known = [...MADE_LABELS, ...metrics.flatMap((name) => samples.get(name) ?? [])]
      expect(labels.filter((label) => !known.includes(label))).toEqual([])
    })
  },
)

test('the dashboard shows every metric', () => {
  const used = shown.flatMap(({ expr }) => expressionOf(expr).metrics)
  const families = used.map((name) => name.replace(/_(?:bucket|sum|count)$/, ''))
  expect(
    Object.keys({ ...METRICS, ...MASTER_METRICS }).filter((name) => !families.includes(name)),
  ).toEqual([])
})

test('every alert has a description, a test in which it fires and a test in which it does not', () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  for (const { alert, labels, annotations } of rules) {
    expect(['warning', 'critical']).toContain(labels.severity)
    expect(Object.keys(annotations).sort()).toEqual(['description', 'runbook_url', 'summary'])
    const own = cases
      .flatMap(({ alert_rule_test }) => alert_rule_test)
      .filter(({ alertname }) => alertname === alert)
    expect(
      own.some(({ exp_alerts }) => exp_alerts.length > 0),
      alert,
    ).toBe(true)
    expect(
      own.some(({ exp_alerts }) => exp_alerts.length === 0),
      alert,
    ).toBe(true)
  }
})

test('the tests of the alerts use metrics that exist', () => {
  for (const { series } of cases.flatMap(({ input_series }) => input_series)) {
    const { mistakes, metrics, labels } = expressionOf(series)
    expect(mistakes).toEqual([])
    expect([...labels].sort()).toEqual([...(samples.get(metrics[0] ?? '') ?? ['-'])].sort())
  }
})

describe.runIf(hasPromtool)('promtool', () => {
  const inOps = (name: string) => join(ROOT, 'ops', name)

  test('accepts the rules and the configuration', () => {
    expect(promtool(['check', 'rules', inOps('alerts.yml')])).toMatchObject({ status: 0 })
    const configuration = ['check', 'config', '--syntax-only', inOps('prometheus.yml')]
    expect(promtool(configuration)).toMatchObject({ status: 0 })
  })

  test('confirms that each alert fires and stays silent as its tests expect', () => {
    const { status, output } = promtool(['test', 'rules', inOps('alerts.test.yml')])
    expect(status, output).toBe(0)
  })
})

test('the scrape targets one gateway, with the required permission', () => {
  const { scrape_configs, rule_files } = parse(read('prometheus.yml'))
  expect(rule_files).toEqual(['alerts.yml'])
  const [{ metrics_path, static_configs, oauth2 }] = scrape_configs
  expect(metrics_path).toBe('/-/metrics')
  expect(static_configs[0].targets).toHaveLength(1)
  expect(oauth2.scopes).toEqual(['portcullis:metrics:read'])
  expect(oauth2).not.toHaveProperty('client_secret')
})

test.each(rules.map(({ alert, annotations }) => [alert, annotations.runbook_url ?? '']))(
  'the alert %s names a section of the documents: %s',
  (_, url) => {
    expect(url).toMatch(/^docs\/[a-z-]+\.md#[a-z-]+$/)
    expect(faultOf('README.md', url)).toBeUndefined()
  },
)
