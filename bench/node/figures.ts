/** Figures and tables of the gateways on Node, with their aims. */
import type { Summary } from '../measure/rounds.ts'
import { median, rounded, spreadOf } from '../measure/statistics.ts'
import { type Figure, figure, ratioFigure, type Table } from '../scenario.ts'
import type { NodeGateway } from './contestants.ts'
import type { Costs } from './costs.ts'

/** A contestant with what its rounds cost. */
export interface Measured {
  readonly gateway: Pick<NodeGateway, 'id' | 'title' | 'isDurable'>
  readonly summary: Summary
  readonly costs: readonly Costs[]
  /** Bytes on the disk for each event, after the process has ended. */
  readonly storedBytes: number
}

const most = (value: number, stretch: number) => ({ at: 'most', value, stretch }) as const

const RATIOS: readonly (readonly [of: string, to: string, title: string, aim?: Figure['aim']])[] = [
  ['log', 'bare', 'log lines: CPU to the bare proxy', most(2.2, 1.8)],
  ['durable', 'bare', 'durable audit: CPU to the bare proxy', most(3, 2.2)],
  ['log', 'by-hand-log', 'log lines: CPU to the opponent by hand', most(1.5, 1.2)],
  ['durable', 'by-hand-durable', 'durable audit: CPU to the opponent by hand', most(1.5, 1.2)],
  ['by-hand-log', 'bare', 'by hand, log lines: CPU to the bare proxy'],
  ['by-hand-durable', 'bare', 'by hand, durable audit: CPU to the bare proxy'],
]
const BYTES_PER_KILOBYTE = 1_000

/** Returns the figures of what was measured. PostgreSQL may be missing. */
export function figuresOf(measured: readonly Measured[]): readonly Figure[] {
  const find = (id: string) => measured.find(({ gateway }) => gateway.id === id)
  const get = (id: string) => {
    const found = find(id)
    if (found === undefined) throw new Error(`${id} was not measured`)
    return found
  }
  const roundsOf = (id: string) => get(id).summary.rounds
  /** What durability adds to an event, in each round. */
  const added = (id: string, to: string) =>
    spreadOf(roundsOf(id).map((round, at) => round.cpuMicros - (roundsOf(to)[at]?.cpuMicros ?? 0)))
  const addedFigure = (id: string, to: string, title: string, aim?: Figure['aim']) => {
    const { median: value, quartiles } = added(id, to)
    return figure(`${id}-added`, title, value, 'us', { quartiles, ...(aim && { aim }) })
  }
  const written = ({ costs }: Measured) => kilobytes(median(costs.map((one) => one.writtenBytes)))
  const stored = ({ storedBytes }: Measured) => kilobytes(storedBytes)
  const [ours, theirs, postgres] = [get('durable'), get('by-hand-durable'), find('postgres')]
  return [
    ...RATIOS.map(([of, to, title, aim]) =>
      ratioFigure(
        `${of}-to-${to}`,
        title,
        [roundsOf(of), roundsOf(to), 'cpuMicros'],
        aim && { aim },
      ),
    ),
    addedFigure('durable', 'log', 'durable audit: CPU of an event over log lines', most(45, 25)),
    addedFigure('by-hand-durable', 'by-hand-log', 'by hand: CPU of a durable event over log lines'),
    figure('written', 'written to the disk for an event', written(ours), 'KB', {
      aim: most(1, 0.25),
    }),
    figure('stored', 'stored on the disk for an event', stored(ours), 'KB', {
      aim: most(0.3, 0.15),
    }),
    figure('by-hand-written', 'by hand: written to the disk for an event', written(theirs), 'KB'),
    figure('by-hand-stored', 'by hand: stored on the disk for an event', stored(theirs), 'KB'),
    ratioFigure(
      'redis-cpu-to-by-hand',
      'CPU of Redis for an admission to that of the opponent by hand',
      [get('log').costs, get('by-hand-log').costs, 'redisMicros'],
      { aim: most(1.6, 1.3) },
    ),
    ...(postgres === undefined ? [] : postgresFigures(postgres, added('postgres', 'log').median)),
    ...measured.map(({ gateway: { id, title }, summary }) =>
      figure(`${id}-cpu`, `${title}: CPU of a request`, rounded(summary.cpuMicros, 1), 'us'),
    ),
  ]
}

function postgresFigures({ costs }: Measured, added: number): readonly Figure[] {
  const { median: own, quartiles } = spreadOf(costs.map(({ postgresMicros }) => postgresMicros))
  return [
    figure('postgres-cpu-of-event', "CPU of PostgreSQL's own processes for an event", own, 'us', {
      quartiles,
      aim: most(5, 3),
    }),
    figure('postgres-added', 'with PostgreSQL: CPU of the gateway over log lines', added, 'us'),
  ]
}

const kilobytes = (bytes: number): number => rounded(bytes / BYTES_PER_KILOBYTE, 3)

/** Returns the medians of the rounds. CPU is read when every event is stored. */
export function tableOf(title: string, measured: readonly Measured[]): Table {
  return {
    title,
    headings: [
      ...['', 'req/s', 'p50 ms', 'p99 ms', 'CPU us', 'user', 'system'],
      ...['written B', 'stored B', 'Redis us', 'script us', 'PostgreSQL us'],
    ],
    rows: measured.map(({ gateway, summary, costs, storedBytes }) => {
      const of = (key: keyof Costs, digits: number) =>
        median(costs.map((one) => one[key])).toFixed(digits)
      return [
        gateway.title,
        summary.requestsPerSecond.toFixed(0),
        summary.p50Ms.toFixed(2),
        summary.p99Ms.toFixed(2),
        summary.cpuMicros.toFixed(0),
        summary.cpuUserMicros.toFixed(0),
        summary.cpuSystemMicros.toFixed(0),
        gateway.isDurable ? of('writtenBytes', 0) : '-',
        gateway.isDurable && storedBytes > 0 ? storedBytes.toFixed(0) : '-',
        of('redisMicros', 1),
        Number(of('scripts', 1)) >= 0.5 ? of('scriptMicros', 1) : '-',
        gateway.id === 'postgres' ? of('postgresMicros', 1) : '-',
      ]
    }),
  }
}
