/** Sections about separate runs: soak, profile, comparisons. */
import type { Plot } from '../scenario.ts'
import { type Badge, type Block, badgeOf, type Section } from './content.ts'
import { dayOf, numberText } from './format.ts'
import type { Results } from './results.ts'
import type { Compared, MemorySamples, Soak } from './schema.ts'
import { slowedBy } from './standing.ts'

/** Returns the soak's section: invariants, plots over time, figures per minute, and faults. */
export function soak({ soak: saved }: Results): Section | undefined {
  if (saved === undefined) return undefined
  const { load, invariants, minutes, faults, audit, options } = saved.result
  const ms = (value: number | null) => (value === null ? '-' : numberText(value))
  return {
    id: 'soak',
    title: `Soak of ${dayOf(saved.result.date)}`,
    blocks: [
      {
        kind: 'text',
        text:
          `Two gateways over one Redis for ${numberText(options.minutes)} minutes, with ` +
          `${numberText(load.offeredPerSecond)} offered requests a second and a fault in each window: ` +
          `${numberText(load.requests)} requests. ${numberText(audit.matched)} of ` +
          `${numberText(audit.answered)} responses have exactly one audit event. ` +
          `${numberText(audit.diedWithGateway)} events were in memory of a killed gateway, ` +
          `${numberText(audit.lost)} are lost.`,
      },
      {
        kind: 'table',
        title: 'Invariants',
        headings: ['invariant', 'measured', 'aim', ''],
        rows: invariants.map(({ what, value, aim, holds }) => [what, value, aim, badgeOf(holds)]),
      },
      ...soakPlots(saved.result).map((plot): Block => ({ kind: 'plot', plot, anchor: 'soak' })),
      {
        kind: 'table',
        title: 'By minute; latency in ms',
        headings: ['minute', 'responses', 'p50', 'p99', 'longest', 'p99 without faults'],
        rows: minutes.map(({ answers, p50Ms, p99Ms, maxMs, quietP99Ms }, index) => [
          String(index + 1),
          numberText(answers),
          ...[p50Ms, p99Ms, maxMs, quietP99Ms].map(ms),
        ]),
        onlyOnPage: true,
      },
      {
        kind: 'table',
        title: 'Faults, in seconds since the start of the load',
        headings: ['fault', 'from', 'to', 'failures it explains', 'last one after its end'],
        rows: faults.map(({ name, startSeconds, endSeconds, troubles, recoverySeconds }) => [
          name,
          ...[startSeconds, endSeconds, troubles].map(numberText),
          ms(recoverySeconds),
        ]),
        folded: 'All faults',
        onlyOnPage: true,
      },
    ],
  }
}

/** Returns latency, responses and memory over time, with the faults in the background. */
export function soakPlots({ series, memory, faults }: Soak): readonly Plot[] {
  const bands = faults.map(({ name, startSeconds, endSeconds }) => ({
    name,
    from: startSeconds,
    to: endSeconds,
  }))
  type Values = readonly (readonly [seconds: number, value: number | null])[]
  const plot = (
    id: string,
    title: string,
    y: Plot['y'],
    lines: readonly (readonly [name: string, values: Values])[],
  ): Plot => ({
    id,
    title,
    kind: 'line',
    x: { title: 'seconds' },
    y,
    bands,
    series: lines.map(([name, values]) => ({
      name,
      points: values.flatMap(([at, value]) => (value === null ? [] : [[at, value] as const])),
    })),
  })
  const over = (values: readonly (number | null)[]): Values => [...values.entries()]
  const plots: Plot[] = []
  if (series !== undefined)
    plots.push(
      plot('latency', 'Latency over time', { title: 'ms', log: true }, [
        ['p50', over(series.p50Ms)],
        ['p95', over(series.p95Ms)],
        ['p99', over(series.p99Ms)],
      ]),
      plot('answers', 'Responses over time', { title: 'a second' }, [
        ['2xx', over(series.ok)],
        ['4xx', over(series.refused)],
        ['5xx', over(series.failed)],
        ['no response', over(series.none)],
      ]),
    )
  for (const kind of ['heap', 'resident'] as const) {
    const lines = (memory?.gateways ?? []).map(
      (gateway, index) => [`gateway ${index + 1}`, samplesOf(gateway[kind])] as const,
    )
    const title = kind === 'heap' ? 'Heap of the isolate' : 'Resident memory of workerd'
    if (lines.length > 0) plots.push(plot(kind, `${title} over time`, { title: 'MB' }, lines))
  }
  return plots
}

const samplesOf = ({ samples }: { readonly samples: MemorySamples }) =>
  samples.map(([seconds, megabytes]) => [seconds, megabytes] as const)

/** Returns the section about the CPU time of the full pipeline. */
export function profile({ profile: saved }: Results): Section | undefined {
  if (saved === undefined) return undefined
  const { stages = [], requests, cpuMicros } = saved.result
  const share = (of: number) => `${numberText(Math.round(of * 1000) / 10)} %`
  return {
    id: 'profile',
    title: 'CPU profile',
    blocks: [
      {
        kind: 'text',
        text: `${numberText(requests)} requests, ${numberText(cpuMicros)} us of CPU each.`,
      },
      {
        kind: 'table',
        title: 'Stages of the pipeline',
        headings: ['stage', 'us of a request', 'share'],
        rows: stages.map(({ stage, micros, share: of }) => [stage, numberText(micros), share(of)]),
      },
    ],
  }
}

const TONES: Readonly<Record<Compared['verdict'], Badge['tone']>> = {
  ok: 'good',
  regression: 'bad',
  noisy: 'open',
}

/** Returns the section about compared revisions. */
export function comparisons({ comparisons: all }: Results): Section | undefined {
  if (all.length === 0) return undefined
  return {
    id: 'comparisons',
    title: 'Compared revisions',
    blocks: [
      {
        kind: 'table',
        title: 'Ratio of the later to the earlier revision: median of pairs and its interval',
        headings: ['revisions', 'CPU of a request', 'requests a second', 'pairs', 'verdict'],
        rows: all.map(({ path, result }) => {
          const { base, head, cpu, throughput, pairs, verdict, options } = result
          const slowed = slowedBy(options.slowDownPercent)
          return [
            { text: `${base.name} and ${head.name}${slowed}`, file: path },
            intervalText(cpu),
            intervalText(throughput),
            String(pairs.length),
            { badge: verdict, tone: TONES[verdict] },
          ]
        }),
      },
    ],
  }
}

function intervalText({ median, low, high, coverage }: Compared['cpu']): string {
  const percent = numberText(Math.round(coverage * 100))
  return `${median.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)}, ${percent} %)`
}
