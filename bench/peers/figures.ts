/** Figures, tables and plots of the gateways, and the ratio of ours to each. */
import type { Summary } from '../measure/rounds.ts'
import { ratioSpreadOf, rounded, type Spread, sumOf } from '../measure/statistics.ts'
import { type Figure, figure, type Plot, type Table } from '../scenario.ts'
import { FEATURES, type Feature, type Peer, PROBES, type ProbeId } from './peer.ts'

/** A gateway's figures, and the ratio of ours to them. */
export type Standing = ReturnType<typeof standingsOf>[number]

const COMPARED = ['cpuMicros', 'requestsPerSecond', 'p50Ms', 'p99Ms'] as const
export type Compared = (typeof COMPARED)[number]

const MICROS_PER_MS = 1_000

/** Microseconds of one request are milliseconds of a thousand. */
const secondsPerThousand = (micros: number): number => rounded(micros / MICROS_PER_MS, 5)

/** Computes the standings. `ours` is the id of our gateway. Throws a `RangeError` if it is missing. */
export function standingsOf(
  summaries: readonly Summary[],
  ours: string,
  versionOf: (id: string) => string = () => '',
) {
  const own = summaries.find(({ id }) => id === ours)
  if (own === undefined) throw new RangeError(`standings: ${ours} was not measured`)
  return summaries.map((median) => ({
    id: median.id,
    title: median.title,
    version: versionOf(median.id),
    median,
    /** Our value divided by its value, over neighbouring rounds; 1 for ours. */
    oursToIt: Object.fromEntries(
      COMPARED.map((key) => [key, ratioSpreadOf(own.rounds, median.rounds, key)]),
    ) as Record<Compared, Spread>,
  }))
}

/** The gateway to which the targets apply: the handwritten stack. */
const AIMED_AT = 'handwritten'
const AIMS = {
  cpuMicros: { at: 'most', value: 0.55 },
  requestsPerSecond: { at: 'least', value: 2 },
  p99Ms: { at: 'most', value: 0.5 },
} as const satisfies Partial<Record<Compared, Figure['aim']>>

/** Id and title of each compared value. */
const RATIOS = {
  cpuMicros: ['cpu', 'CPU'],
  requestsPerSecond: ['rps', 'requests a second'],
  p99Ms: ['p99', 'p99'],
} as const

/** Returns the p99 of each at one rate, then ours as a ratio to each other. */
export function pacedFiguresOf(standings: readonly Standing[], ours: string): readonly Figure[] {
  const others = standings.filter(({ id }) => id !== ours)
  return [
    ...standings.map(({ id, title, median: { p99Ms } }) =>
      figure(`${id}-paced-p99`, `${title}: p99 at the same rate`, p99Ms, 'ms'),
    ),
    ...others.map(({ id, title, oursToIt }) => {
      const what = `p99 at the same rate, ours to ${title}`
      const { median, quartiles } = oursToIt.p99Ms
      const more = { quartiles, ...aimOf(id, 'p99Ms') }
      return figure(`paced-p99-to-${id}`, what, median, 'ratio', more)
    }),
  ]
}

const aimOf = (id: string, key: keyof typeof AIMS) => (id === AIMED_AT ? { aim: AIMS[key] } : {})

/** Returns the figures of each, then ours as a ratio to each other. */
export function figuresOf(standings: readonly Standing[], ours: string): readonly Figure[] {
  const own = standings.flatMap(({ id, title, median }) => {
    const cpu = secondsPerThousand(median.cpuMicros)
    const redisCpu = secondsPerThousand(median.redisCpuMicros)
    return [
      figure(`${id}-rps`, `${title}: requests a second`, median.requestsPerSecond, '1/s'),
      figure(`${id}-p50`, `${title}: p50`, median.p50Ms, 'ms'),
      figure(`${id}-p99`, `${title}: p99`, median.p99Ms, 'ms'),
      figure(`${id}-cpu-per-1000`, `${title}: CPU for 1,000 requests`, cpu, 's'),
      figure(
        `${id}-redis-cpu-per-1000`,
        `${title}: CPU of Redis for 1,000 requests`,
        redisCpu,
        's',
      ),
    ]
  })
  const others = standings.filter(({ id }) => id !== ours)
  const keys = Object.keys(RATIOS) as (keyof typeof RATIOS)[]
  const shares = others.flatMap(({ id, title, oursToIt }) =>
    keys.map((key) => {
      const [name, what] = RATIOS[key]
      const { median, quartiles } = oursToIt[key]
      const more = { quartiles, ...aimOf(id, key) }
      return figure(`${name}-to-${id}`, `${what}, ours to ${title}`, median, 'ratio', more)
    }),
  )
  return [...own, ...shares]
}

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
      secondsPerThousand(median.cpuMicros).toFixed(4),
      secondsPerThousand(median.redisCpuMicros).toFixed(4),
      median.redisCalls.toFixed(2),
      oursToIt.cpuMicros.median.toFixed(2),
      oursToIt.requestsPerSecond.median.toFixed(2),
      oursToIt.p99Ms.median.toFixed(2),
    ]),
  }
}

/** Returns latencies at one rate in requests per second, below the capacity of every gateway. */
export function pacedTable(standings: readonly Standing[], ratePerSecond: number): Table {
  return {
    title: `At ${ratePerSecond} requests a second each`,
    headings: ['gateway', 'req/s', 'given up', 'p50 ms', 'p99 ms', 'CPU s per 1,000', 'p99 ratio'],
    rows: standings.map(({ title, median, oursToIt }) => [
      title,
      median.requestsPerSecond.toFixed(0),
      String(sumOf(median.rounds, ({ givenUp }) => givenUp)),
      median.p50Ms.toFixed(2),
      median.p99Ms.toFixed(2),
      secondsPerThousand(median.cpuMicros).toFixed(4),
      oursToIt.p99Ms.median.toFixed(2),
    ]),
  }
}

/** Returns the table of features. The ratios mean little without it. */
export function featureTable(peers: readonly Peer[]): Table {
  const probes = Object.entries(PROBES) as [ProbeId, string][]
  const features = Object.entries(FEATURES) as [Feature, string][]
  return {
    title: 'Features: the status for each probe, then the configuration',
    headings: ['', ...peers.map(({ title }) => title)],
    rows: [
      ...probes.map(([id, what]) => [what, ...peers.map(({ refuses }) => `${refuses[id] ?? 200}`)]),
      ...features.map(([id, what]) => [what, ...peers.map(({ does }) => does[id])]),
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
    plot('cpu', 'CPU of the gateway', 's per 1,000 requests', ({ median }) =>
      secondsPerThousand(median.cpuMicros),
    ),
    plot('rps', 'Throughput', 'requests a second', ({ median }) => median.requestsPerSecond),
    plot('p99', 'p99 at the same closed load', 'ms', ({ median }) => median.p99Ms),
    ...(paced.length > 0
      ? [plot('paced-p99', 'p99 at the same rate', 'ms', ({ median }) => median.p99Ms, paced)]
      : []),
  ]
}
