/** Figures, tables and the plot of the relation measurements. Pure. */
import type { PacedSample, Summary } from '../measure/rounds.ts'
import { medianOf, noiseNotes, noneOf, ratioOf, rounded, sumOf } from '../measure/statistics.ts'
import {
  type Check,
  type Figure,
  figure,
  type Plot,
  ratioFigure,
  type ScenarioResult,
  type Table,
} from '../scenario.ts'
import type { Filled } from './direct-redis.ts'
import type { ChecksById, SlowRound } from './measure-checks.ts'
import { type Course, WAY_IDS, WAYS, type WayId } from './measure-gateway.ts'
import type { SlowGraph } from './slow-graphs.ts'

const MICROS_PER_MS = 1_000
/** Target for the ratio between the most and the fewest tuples. */
const FLAT = { at: 'most', value: 1.2 } as const
/** Redis runs nothing else during a script. */
const BLOCKING_MS = { at: 'most', value: 5 } as const
const ONE_CALL = { at: 'most', value: 1 } as const
const BESIDE = ['subzero-permissions'] as const

export interface MeasuredWay extends Summary {
  /** Redis scripts that ran in one call, the median of the rounds. */
  readonly scripts: number
}

export interface PacedCourses {
  readonly samples: readonly PacedSample[]
  /** Correct responses, and refusals of an overloaded machine. */
  readonly right: number
  readonly shed: number
  /** Calls to Redis per request. */
  readonly calls: number
}

export interface Found {
  readonly filled: readonly Filled[]
  readonly usual: number
  readonly checks: ChecksById
  readonly ways: Readonly<Record<WayId, MeasuredWay>>
  readonly courses: readonly Course[]
  readonly paced: PacedCourses
  /** The longest check in Redis alone, without the slow graphs, in microseconds. */
  readonly slowestMicros: number
  readonly slow: readonly { readonly graph: SlowGraph; readonly round: SlowRound }[]
}

const QUANTILES = ['p50', 'p95', 'p99'] as const
type Quantile = (typeof QUANTILES)[number]
type Answer = 'allowed' | 'denied'

type Findings = ReturnType<typeof findingsOf>

function findingsOf(found: Found) {
  const { checks, ways, courses, paced } = found
  const roundsOf = (answer: Answer, size: number) => checks[`${answer}-${size}`] ?? []
  return {
    found,
    roundsOf,
    /** Returns the time of a check in Redis alone, the median of its rounds. */
    microsOf: (answer: Answer, size: number) => medianOf(roundsOf(answer, size), 'micros', 1),
    /** Returns the CPU time of Redis for a check. */
    cpuOf: (answer: Answer, size: number) => medianOf(roundsOf(answer, size), 'cpuMicros', 1),
    /** Returns the latency of a course. Throws a `RangeError` if it was not measured. */
    pacedMs(way: Course['way'], size: number, quantile: Quantile): number {
      const course = courses.findIndex((one) => one.way === way && one.size === size)
      const sample = paced.samples[course]
      if (sample === undefined) throw new RangeError(`${way} with ${size} tuples was not measured`)
      return sample[`${quantile}Ms`]
    },
    /** Returns the calls to Redis per 100 responses. */
    callsOf: (way: WayId) => rounded(100 * ways[way].redisCalls, 2),
  }
}

/** Returns the result. Throws a `RangeError` if a measurement is missing. */
export function resultOf(found: Found): ScenarioResult {
  const findings = findingsOf(found)
  const { filled, checks, slow, ways, paced } = found
  return {
    figures: [
      ...gatewayFigures(findings),
      ...checkFigures(findings),
      ...growthFigures(findings),
      ...slowFigures(found),
    ],
    checks: checksOf(found),
    plots: [growthPlot(findings)],
    tables: [wayTable(findings), growthTable(findings), slowTable(findings)],
    notes: [
      'p50, p95 and p99 are from one load at a fixed rate over all ways and sizes in turn. CPU and ' +
        'requests a second are from a closed load, one way after another.',
      'All sizes are tenants of one Redis, measured in turn. Times of checks are from Redis’ ' +
        'statistics: a busy machine makes them longer, but not their CPU time.',
      ...(paced.shed > 0 ? [`${paced.shed} requests were refused with 503: a busy machine.`] : []),
      ...noiseNotes(Object.values(ways)),
    ],
    details: { filled, checks, slow: slow.map(({ graph: { id }, round }) => ({ id, ...round })) },
  }
}

function gatewayFigures({ found: { ways, usual, paced }, pacedMs, callsOf }: Findings): Figure[] {
  // The published figures include a cache, so the cached decisions come first.
  const decided = ['cached', 'cold'] as const
  const quantiles = decided.flatMap((way) =>
    QUANTILES.map((quantile) => {
      const value = pacedMs(way, usual, quantile)
      const title = `${WAYS[way].title}: ${quantile}`
      return figure(`${way}-${quantile}`, title, value, 'ms', { beside: BESIDE })
    }),
  )
  const added = decided.map((way) => {
    const ms = pacedMs(way, usual, 'p50') - pacedMs('unrelated', usual, 'p50')
    return figure(`${way}-adds`, `${WAYS[way].title}: adds, p50`, rounded(ms, 2), 'ms')
  })
  const cpu = (['cold', 'cached', 'leased', 'denied'] as const).map((way) => {
    const title = `${WAYS[way].title}: CPU to no relation required`
    return ratioFigure(`${way}-cpu`, title, [ways[way].rounds, ways.unrelated.rounds, 'cpuMicros'])
  })
  const calls = `${WAYS.leased.title}: Redis calls for 100 requests`
  return [
    ...quantiles,
    ...added,
    ...cpu,
    figure('calls', 'Redis calls for one request', paced.calls, 'count', { aim: ONE_CALL }),
    figure('leased-calls', calls, callsOf('leased'), 'count'),
  ]
}

function checkFigures({ found: { usual }, microsOf }: Findings): Figure[] {
  const tuples = `${countText(usual)} tuples`
  return [
    figure('check', `a check in Redis, ${tuples}`, microsOf('allowed', usual), 'us'),
    figure(
      'check-denied',
      `a check in Redis that denies, ${tuples}`,
      microsOf('denied', usual),
      'us',
    ),
  ]
}

function growthFigures({ found: { filled }, roundsOf, pacedMs }: Findings): Figure[] {
  const [least, most] = [filled[0] as Filled, filled.at(-1) as Filled]
  const growth = `${countText(least.size)} to ${countText(most.size)} tuples`
  const aim = FLAT
  const ratio = (id: string, title: string, answer: Answer, key: 'micros' | 'cpuMicros') => {
    const of = [roundsOf(answer, most.size), roundsOf(answer, least.size), key] as const
    return ratioFigure(id, title, of, { aim })
  }
  const p50 = pacedMs('cold', most.size, 'p50') / pacedMs('cold', least.size, 'p50')
  const memory = `memory of a tuple, ${countText(most.size)} of them`
  return [
    ...(['allowed', 'denied'] as const).map((answer) =>
      ratio(`growth-${answer}`, `a check in Redis, ${answer}: ${growth}`, answer, 'micros'),
    ),
    ratio('growth-cpu', `CPU of a check in Redis: ${growth}`, 'allowed', 'cpuMicros'),
    figure('growth-p50', `p50 of the gateway: ${growth}`, rounded(p50, 3), 'ratio', { aim }),
    figure('tuple-memory', memory, most.bytes, 'bytes'),
    figure('tuples-written', 'tuples written, 100 at once', most.perSecond, '1/s'),
  ]
}

function slowFigures({ slow, slowestMicros }: Found): Figure[] {
  const ms = (micros: number) => rounded(micros / MICROS_PER_MS, 2)
  const slowest = Math.max(...slow.map(({ round }) => round.slowestMicros))
  const mostExpensive = Math.max(...slow.map(({ round }) => round.cpuMicros))
  const aim = BLOCKING_MS
  const expensive = 'the most expensive check of a slow graph: CPU'
  return [
    figure('slowest-cpu', expensive, ms(mostExpensive), 'ms', { aim }),
    figure('slowest', 'the longest check of a slow graph', ms(slowest), 'ms', { aim }),
    figure('slowest-usual', 'the longest check over five levels', ms(slowestMicros), 'ms'),
  ]
}

const checksOf = ({ checks, ways, paced, slow }: Found): Check[] => [
  {
    what: 'wrong decisions, in Redis alone',
    seen: noneOf(sumOf(Object.values(checks).flat(), ({ checks: count }) => count)),
  },
  {
    what: 'wrong responses, through the gateway',
    seen: noneOf(
      sumOf(Object.values(ways), ({ rounds }) => sumOf(rounds, (one) => one.requests)) +
        paced.right,
    ),
  },
  {
    what: 'wrong decisions about slow graphs (`unknown` is not wrong)',
    seen: noneOf(sumOf(slow, ({ round }) => round.checks)),
  },
  ...(['unrelated', 'cold', 'cached'] as const).map((way) => ({
    what: `${WAYS[way].title}: scripts of Redis in a call`,
    seen: ways[way].scripts.toFixed(2),
  })),
]

const countText = (count: number): string => count.toLocaleString('en')

const growthPlot = ({ found: { filled }, microsOf }: Findings): Plot => ({
  id: 'growth',
  title: 'A check over five levels, in Redis alone',
  kind: 'line',
  x: { title: 'tuples', log: true },
  y: { title: 'us' },
  series: (['allowed', 'denied'] as const).map((answer) => ({
    name: answer,
    points: filled.map(({ size }) => [size, microsOf(answer, size)] as const),
  })),
})

const growthTable = ({ found: { filled }, microsOf, cpuOf, pacedMs }: Findings): Table => ({
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

const wayTable = ({ found: { ways, usual }, pacedMs, callsOf }: Findings): Table => ({
  title: `Reading an order, ${countText(usual)} tuples`,
  headings: ['', 'p50 ms', 'p95 ms', 'p99 ms', 'req/s', 'CPU us', 'ratio', 'calls for 100'],
  rows: WAY_IDS.map((way) => [
    WAYS[way].title,
    ...QUANTILES.map((quantile) =>
      way === 'denied' || way === 'leased' ? '-' : pacedMs(way, usual, quantile).toFixed(2),
    ),
    countText(ways[way].requestsPerSecond),
    ways[way].cpuMicros.toFixed(0),
    ratioOf(ways[way].rounds, ways.unrelated.rounds, 'cpuMicros').toFixed(2),
    callsOf(way).toFixed(1),
  ]),
})

const slowTable = ({ found: { slow } }: Findings): Table => ({
  title: 'Slow graphs',
  headings: ['', 'checks', 'decided', 'other', 'work', 'most expensive us', 'CPU us', 'longest ms'],
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
