/** Tables and plots of the gateways: figures side by side, and their features. */
import type { Plot, Table } from '../scenario.ts'
import { type Contestant, FEATURES, type Feature, type ProbeId } from './contestant.ts'
import { PROBES } from './probes.ts'
import type { Standing } from './standings.ts'

/** Returns the medians of the rounds. */
export function costTable(standings: readonly Standing[]): Table {
  return {
    title: 'Medians of the rounds; a ratio is ours divided by theirs',
    headings: [
      'gateway',
      'version',
      'req/s',
      'p50 ms',
      'p99 ms',
      'CPU s per 1,000',
      'Redis CPU s',
      'Redis calls',
      'CPU ratio',
      'req/s ratio',
      'p99 ratio',
    ],
    rows: standings.map(({ title, version, median, oursToIt }) => [
      title,
      version,
      median.requestsPerSecond.toFixed(0),
      median.p50Ms.toFixed(2),
      median.p99Ms.toFixed(2),
      median.cpuSeconds.toFixed(4),
      median.redisCpuSeconds.toFixed(4),
      median.redisCalls.toFixed(2),
      oursToIt.cpuSeconds.toFixed(2),
      oursToIt.requestsPerSecond.toFixed(2),
      oursToIt.p99Ms.toFixed(2),
    ]),
  }
}

/** Returns latencies at one rate in requests per second, below the capacity of every gateway. */
export function pacedTable(standings: readonly Standing[], ratePerSecond: number): Table {
  return {
    title: `At ${ratePerSecond} requests a second each`,
    headings: ['gateway', 'req/s', 'given up', 'p50 ms', 'p99 ms', 'CPU s per 1,000', 'p99 ratio'],
    rows: standings.map(({ title, median, oursToIt, rounds }) => [
      title,
      median.requestsPerSecond.toFixed(0),
      String(rounds.reduce((sum, { givenUp }) => sum + givenUp, 0)),
      median.p50Ms.toFixed(2),
      median.p99Ms.toFixed(2),
      median.cpuSeconds.toFixed(4),
      oursToIt.p99Ms.toFixed(2),
    ]),
  }
}

/** Returns the table of features. The ratios mean little without it. */
export function featureTable(cast: readonly Contestant[]): Table {
  const probes = Object.entries(PROBES) as [ProbeId, string][]
  const features = Object.entries(FEATURES) as [Feature, string][]
  return {
    title: 'What each does: its status for what it was tried with, then what it was set up to do',
    headings: ['', ...cast.map(({ title }) => title)],
    rows: [
      ...probes.map(([id, what]) => [what, ...cast.map(({ refuses }) => `${refuses[id] ?? 200}`)]),
      ...features.map(([id, what]) => [what, ...cast.map(({ does }) => does[id])]),
    ],
  }
}

/** Returns bars for each gateway. `paced` is empty if no rate was offered. */
export function plotsOf(
  standings: readonly Standing[],
  paced: readonly Standing[],
): readonly Plot[] {
  type Of = (standing: Standing) => number
  const plot = (id: string, title: string, y: string, of: Of, all = standings): Plot => ({
    id,
    title,
    kind: 'bar',
    x: { title: 'gateway' },
    y: { title: y },
    categories: all.map((each) => each.title),
    series: [{ name: y, points: all.map(of) }],
  })
  return [
    plot('cpu', 'CPU of the gateway', 's per 1,000 requests', ({ median }) => median.cpuSeconds),
    plot('rps', 'Throughput', 'requests a second', ({ median }) => median.requestsPerSecond),
    plot('p99', 'p99 at the same closed load', 'ms', ({ median }) => median.p99Ms),
    ...(paced.length > 0
      ? [plot('paced-p99', 'p99 at the same rate', 'ms', ({ median }) => median.p99Ms, paced)]
      : []),
  ]
}
