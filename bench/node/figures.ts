/** Figures of the gateway on Node, with their aims. */
import type { Sample, Summary } from '../measure/rounds.ts'
import { rounded, spreadOf } from '../measure/statistics.ts'
import { type Figure, figure, ratioFigure, type Table } from '../scenario.ts'

export const CONNECTIONS = 32

export interface Measurements {
  readonly closed: readonly Summary[]
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
const most = (value: number) => ({ at: 'most', value }) as const
const least = (value: number) => ({ at: 'least', value }) as const

const RATIOS: readonly Ratio[] = [
  ['cpu-to-bare', 'CPU to the bare proxy on Node', 'node', 'bare', 'cpuMicros', most(3)],
  ['cpu-to-worker', 'CPU to our own Worker', 'node', 'worker', 'cpuMicros', most(0.28)],
  ['cpu-to-by-hand', 'CPU to the opponent by hand', 'node', 'by-hand', 'cpuMicros', most(1.6)],
  [
    'redis-cpu-to-by-hand',
    'CPU of Redis to that of the opponent by hand',
    'node',
    'by-hand',
    'redisCpuMicros',
    most(2),
  ],
  ['leased-to-bare', 'leased: CPU to the bare proxy', 'leased', 'bare', 'cpuMicros', most(2.2)],
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
export function figuresOf({ closed, processes, paced, related }: Measurements): readonly Figure[] {
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
  return [
    ...ratios,
    ratioFigure(
      'rps-to-readme',
      'throughput to the stack as READMEs show it',
      [roundsOf(closed, 'node'), roundsOf(closed, readme), 'requestsPerSecond'],
      { aim: least(2) },
    ),
    ratioFigure(
      'two-to-one',
      'throughput of two processes to one',
      [two?.rounds ?? [], one?.rounds ?? [], 'requestsPerSecond'],
      { aim: least(1.7) },
    ),
    figure('offered-1000-p99', '1,000 requests a second: p99', pacedP99.median, 'ms', {
      quartiles: pacedP99.quartiles,
      aim: most(24),
      beside: ['spacetime-offered-1000'],
    }),
    figure('relation-p99', 'a request with a decided relation: p99', relatedP99.median, 'ms', {
      quartiles: relatedP99.quartiles,
      aim: most(12.4),
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
