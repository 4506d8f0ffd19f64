/** Tables and plot of the relation measurements. Pure. */
import { medianOf, ratioOf } from '../requests/rounds.ts'
import type { Plot, Table } from '../scenario.ts'
import { WAY_IDS, WAYS } from './measure-gateway.ts'
import type { Summary } from './summary.ts'

const MICROS_PER_MS = 1_000

export const countText = (count: number): string => count.toLocaleString('en')

export const growthPlot = ({ found: { filled }, microsOf }: Summary): Plot => ({
  ...{ id: 'growth', title: 'A check over five levels, in Redis alone', kind: 'line' },
  ...{ x: { title: 'tuples', log: true }, y: { title: 'us' } },
  series: (['allowed', 'denied'] as const).map((answer) => ({
    name: answer,
    points: filled.map(({ size }) => [size, microsOf(answer, size)] as const),
  })),
})

export const growthTable = ({ found: { filled }, microsOf, cpuOf, pacedMs }: Summary): Table => ({
  title: 'From few tuples to many',
  headings: [
    'tuples',
    'allowed us',
    'denied us',
    'CPU us',
    'p50 ms',
    'p99 ms',
    'bytes each',
    'writes/s',
  ],
  rows: filled.map(({ size, bytes, perSecond }) => [
    countText(size),
    microsOf('allowed', size).toFixed(1),
    microsOf('denied', size).toFixed(1),
    cpuOf('allowed', size).toFixed(1),
    pacedMs('cold', size, 'p50').toFixed(2),
    pacedMs('cold', size, 'p99').toFixed(2),
    bytes.toFixed(0),
    countText(perSecond),
  ]),
})

export const wayTable = ({ found: { ways, usual }, pacedMs, callsOf }: Summary): Table => ({
  title: `An order is read, ${countText(usual)} tuples`,
  headings: ['', 'p50 ms', 'p95 ms', 'p99 ms', 'req/s', 'CPU us', 'ratio', 'calls for 100'],
  rows: WAY_IDS.map((way) => [
    WAYS[way].title,
    ...(['p50', 'p95', 'p99'] as const).map((quantile) =>
      way === 'denied' || way === 'leased' ? '-' : pacedMs(way, usual, quantile).toFixed(2),
    ),
    countText(medianOf(ways[way], 'perSecond', 0)),
    medianOf(ways[way], 'cpuMicros', 0).toFixed(0),
    ratioOf(ways[way], ways.unrelated, 'cpuMicros').toFixed(2),
    callsOf(way).toFixed(1),
  ]),
})

export const slowTable = ({ found: { slow } }: Summary): Table => ({
  title: 'Graphs made to be slow',
  headings: ['', 'checks', 'answered', 'else', 'work', 'dearest us', 'CPU us', 'longest ms'],
  rows: slow.map(({ graph, round }) => [
    graph.title,
    countText(round.checks),
    countText(round.answered),
    round.unknown.join(', ') || '-',
    countText(round.mostWork),
    round.micros.toFixed(0),
    round.cpuMicros.toFixed(0),
    (round.slowestMicros / MICROS_PER_MS).toFixed(2),
  ]),
})
