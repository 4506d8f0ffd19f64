/** Figures of the gateway on Node, with their aims. */
import type { Sample, Summary } from '../measure/rounds.ts'
import { median, rounded, spreadOf } from '../measure/statistics.ts'
import { type Figure, figure, ratioFigure, type Table } from '../scenario.ts'
import type { RedisUse } from './redis-use.ts'

export const CONNECTIONS = 32

export interface Measurements {
  readonly closed: readonly Summary[]
  /** What the rounds of `closed` cost in Redis, by contestant. */
  readonly redisUse: ReadonlyMap<string, readonly RedisUse[]>
  /** One process, then two. */
  readonly processes: readonly Summary[]
  readonly paced: readonly Summary[]
  readonly related: readonly Summary[]
}

type Ratio = readonly [
  id: string,
  title: string,
  of: string,
  to: string,
  key: keyof Sample,
  aim?: Figure['aim'],
]
const most = (value: number, stretch: number) => ({ at: 'most', value, stretch }) as const

const RATIOS: readonly Ratio[] = [
  ['cpu-to-bare', 'CPU to the bare proxy on Node', 'node', 'bare', 'cpuMicros', most(3, 2.2)],
  ['cpu-to-worker', 'CPU to our own Worker', 'node', 'worker', 'cpuMicros', most(0.28, 0.2)],
  ['cpu-to-by-hand', 'CPU to the opponent by hand', 'node', 'by-hand', 'cpuMicros', most(1.6, 1.2)],
  [
    'leased-to-bare',
    'leased: CPU to the bare proxy',
    'leased',
    'bare',
    'cpuMicros',
    most(2.2, 1.7),
  ],
  ['stream-to-bare', 'audit stream: CPU to the bare proxy', 'stream', 'bare', 'cpuMicros'],
  ['by-hand-to-bare', 'by hand: CPU to the bare proxy', 'by-hand', 'bare', 'cpuMicros'],
  [
    'worker-to-by-hand',
    'our Worker: CPU to the opponent by hand on workerd',
    'worker',
    'by-hand-workerd',
    'cpuMicros',
  ],
]

/** Throws an `Error` if a contestant was not measured. */
export function figuresOf(measured: Measurements): readonly Figure[] {
  const { closed, redisUse, processes, paced, related } = measured
  const roundsOf = (of: readonly Summary[], id: string) => {
    const found = of.find((one) => one.id === id)
    if (found === undefined) throw new Error(`${id} was not measured`)
    return found.rounds
  }
  const ratios = RATIOS.map(([id, title, of, to, key, aim]) =>
    ratioFigure(id, title, [roundsOf(closed, of), roundsOf(closed, to), key], aim && { aim }),
  )
  const throughput = (id: string) =>
    spreadOf(roundsOf(closed, id).map(({ requestsPerSecond }) => requestsPerSecond)).median
  const readme = throughput('readme') > throughput('readme-workerd') ? 'readme' : 'readme-workerd'
  const [one, two] = processes
  const p99 = (rounds: readonly Sample[]) => spreadOf(rounds.map(({ p99Ms }) => p99Ms))
  const pacedP99 = p99(roundsOf(paced, 'node'))
  const relatedP99 = p99(roundsOf(related, 'related'))
  const inRedis = (id: string) => redisUse.get(id) ?? []
  const ours = [inRedis('node'), inRedis('by-hand')] as const
  return [
    ...ratios,
    ratioFigure(
      'redis-cpu-to-by-hand',
      'CPU of Redis for an admission to that of the opponent by hand',
      [...ours, 'cpuMicros'],
      { aim: most(2, 1.3) },
    ),
    ratioFigure('script-to-by-hand', 'time of the script to that of the opponent by hand', [
      ...ours,
      'scriptMicros',
    ]),
    ratioFigure(
      'rps-to-readme',
      'throughput to the stack as READMEs show it',
      [roundsOf(closed, 'node'), roundsOf(closed, readme), 'requestsPerSecond'],
      { aim: { at: 'least', value: 2, stretch: 3 } },
    ),
    ratioFigure(
      'two-to-one',
      'throughput of two processes to one',
      [two?.rounds ?? [], one?.rounds ?? [], 'requestsPerSecond'],
      { aim: { at: 'least', value: 1.7 } },
    ),
    figure('offered-1000-p99', '1,000 requests a second: p99', pacedP99.median, 'ms', {
      quartiles: pacedP99.quartiles,
      aim: most(24, 8),
      beside: ['spacetime-offered-1000'],
    }),
    figure('relation-p99', 'a request with a decided relation: p99', relatedP99.median, 'ms', {
      quartiles: relatedP99.quartiles,
      aim: most(12.4, 4),
      beside: ['subzero-permissions'],
    }),
    ...closed.map(({ id, title, cpuMicros }) =>
      figure(`${id}-cpu`, `${title}: CPU of a request`, rounded(cpuMicros, 1), 'us'),
    ),
  ]
}

/** The medians of the rounds. */
export function tableOf(title: string, summaries: readonly Summary[]): Table {
  return {
    title,
    headings: ['', 'req/s', 'p50 ms', 'p99 ms', 'CPU us', 'Redis CPU us', 'cores', 'Redis cores'],
    rows: summaries.map((each) => [
      each.title,
      each.requestsPerSecond.toFixed(0),
      each.p50Ms.toFixed(2),
      each.p99Ms.toFixed(2),
      each.cpuMicros.toFixed(0),
      each.redisCpuMicros.toFixed(0),
      each.gatewayCores.toFixed(2),
      each.redisCores.toFixed(2),
    ]),
  }
}

/** The medians of what a request cost in Redis itself. */
export function redisTableOf({
  closed,
  redisUse,
}: Pick<Measurements, 'closed' | 'redisUse'>): Table {
  return {
    title: 'In Redis itself: one request, and one script',
    headings: ['', 'scripts', 'script us', 'CPU us'],
    rows: closed.map(({ id, title }) => {
      const uses = redisUse.get(id) ?? []
      const of = (key: keyof RedisUse) => median(uses.map((use) => use[key])).toFixed(2)
      return [title, of('scripts'), of('scriptMicros'), of('cpuMicros')]
    }),
  }
}
