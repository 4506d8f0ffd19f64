/** Figures, tables and the plot of the relation measurements. Pure. */
import type { PacedSample, Summary } from '../measure/rounds.ts'
import { medianOf, noiseNotes, noneOf, ratioOf, rounded, sumOf } from '../measure/statistics.ts'
import type { Check, Figure, Plot, ScenarioResult, Table } from '../scenario.ts'
import type { Filled } from './direct-redis.ts'
import type { CheckRound, ChecksById, SlowRound } from './measure-checks.ts'
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

export interface Findings {
  readonly found: Found
  roundsOf(answer: Answer, size: number): readonly CheckRound[]
  /** Time of a check in Redis alone, the median of its rounds. */
  microsOf(answer: Answer, size: number): number
  cpuOf(answer: Answer, size: number): number
  /** Latency of a course. Throws a `RangeError` if the course was not measured. */
  pacedMs(way: Course['way'], size: number, quantile: Quantile): number
  /** Calls to Redis per 100 responses. */
  callsOf(way: WayId): number
}

export function findingsOf(found: Found): Findings {
  const { checks, ways, courses, paced } = found
  const roundsOf = (answer: Answer, size: number) => checks[`${answer}-${size}`] ?? []
  return {
    found,
    roundsOf,
    microsOf: (answer, size) => medianOf(roundsOf(answer, size), 'micros', 1),
    cpuOf: (answer, size) => medianOf(roundsOf(answer, size), 'cpuMicros', 1),
    pacedMs(way, size, quantile) {
      const course = courses.findIndex((one) => one.way === way && one.size === size)
      const sample = paced.samples[course]
      if (sample === undefined) throw new RangeError(`${way} with ${size} tuples was not measured`)
      return sample[`${quantile}Ms`]
    },
    callsOf: (way) => rounded(100 * ways[way].redisCalls, 2),
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
  return [
    ...decided.flatMap((way) =>
      QUANTILES.map(
        (quantile): Figure => ({
          ...{ id: `${way}-${quantile}`, title: `${WAYS[way].title}: ${quantile}`, unit: 'ms' },
          ...{ value: pacedMs(way, usual, quantile), beside: BESIDE },
        }),
      ),
    ),
    ...decided.map(
      (way): Figure => ({
        ...{ id: `${way}-adds`, title: `${WAYS[way].title}: adds, p50`, unit: 'ms' },
        value: rounded(pacedMs(way, usual, 'p50') - pacedMs('unrelated', usual, 'p50'), 2),
      }),
    ),
    ...(['cold', 'cached', 'leased', 'denied'] satisfies WayId[]).map(
      (way): Figure => ({
        ...{ id: `${way}-cpu`, title: `${WAYS[way].title}: CPU to no relation demanded` },
        ...{ unit: 'ratio', value: ratioOf(ways[way].rounds, ways.unrelated.rounds, 'cpuMicros') },
      }),
    ),
    {
      ...{ id: 'calls', title: 'Redis calls for one request', unit: 'count' },
      ...{ value: paced.calls, aim: ONE_CALL },
    },
    {
      ...{ id: 'leased-calls', title: `${WAYS.leased.title}: Redis calls for 100 requests` },
      ...{ unit: 'count', value: callsOf('leased') },
    },
  ]
}

const checkFigures = ({ found: { usual }, microsOf }: Findings): Figure[] => [
  {
    ...{ id: 'check', title: `a check in Redis, ${countText(usual)} tuples`, unit: 'us' },
    value: microsOf('allowed', usual),
  },
  {
    ...{ id: 'check-denied', title: `a check in Redis that denies, ${countText(usual)} tuples` },
    ...{ unit: 'us', value: microsOf('denied', usual) },
  },
]

function growthFigures({ found: { filled }, roundsOf, pacedMs }: Findings): Figure[] {
  const [least, most] = [filled[0] as Filled, filled.at(-1) as Filled]
  const growth = `${countText(least.size)} to ${countText(most.size)} tuples`
  return [
    ...(['allowed', 'denied'] as const).map(
      (answer): Figure => ({
        ...{ id: `growth-${answer}`, title: `a check in Redis, ${answer}: ${growth}` },
        ...{ unit: 'ratio', aim: FLAT },
        value: ratioOf(roundsOf(answer, most.size), roundsOf(answer, least.size), 'micros'),
      }),
    ),
    {
      ...{
        id: 'growth-cpu',
        title: `CPU of a check in Redis: ${growth}`,
        unit: 'ratio',
        aim: FLAT,
      },
      value: ratioOf(roundsOf('allowed', most.size), roundsOf('allowed', least.size), 'cpuMicros'),
    },
    {
      ...{ id: 'growth-p50', title: `p50 of the gateway: ${growth}`, unit: 'ratio', aim: FLAT },
      value: rounded(pacedMs('cold', most.size, 'p50') / pacedMs('cold', least.size, 'p50'), 3),
    },
    {
      ...{ id: 'tuple-memory', title: `memory of a tuple, ${countText(most.size)} of them` },
      ...{ unit: 'bytes', value: most.bytes },
    },
    {
      ...{ id: 'tuples-written', title: 'tuples written, 100 at once', unit: '1/s' },
      value: most.perSecond,
    },
  ]
}

function slowFigures({ slow, slowestMicros }: Found): Figure[] {
  const slowest = Math.max(...slow.map(({ round }) => round.slowestMicros))
  const mostExpensive = Math.max(...slow.map(({ round }) => round.cpuMicros))
  return [
    {
      ...{
        id: 'dearest-cpu',
        title: 'the most expensive check of a slow graph: CPU',
        unit: 'ms',
      },
      ...{ value: rounded(mostExpensive / MICROS_PER_MS, 2), aim: BLOCKING_MS },
    },
    {
      ...{ id: 'slowest', title: 'the longest check of a slow graph', unit: 'ms' },
      ...{ value: rounded(slowest / MICROS_PER_MS, 2), aim: BLOCKING_MS },
    },
    {
      ...{ id: 'slowest-usual', title: 'the longest check over five levels', unit: 'ms' },
      value: rounded(slowestMicros / MICROS_PER_MS, 2),
    },
  ]
}

const checksOf = ({ checks, ways, paced, slow }: Found): Check[] => [
  {
    what: 'decisions that were wrong, in Redis alone',
    seen: noneOf(sumOf(Object.values(checks).flat(), ({ checks: count }) => count)),
  },
  {
    what: 'answers that were wrong, through the gateway',
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

export const countText = (count: number): string => count.toLocaleString('en')

export const growthPlot = ({ found: { filled }, microsOf }: Findings): Plot => ({
  ...{ id: 'growth', title: 'A check over five levels, in Redis alone', kind: 'line' },
  ...{ x: { title: 'tuples', log: true }, y: { title: 'us' } },
  series: (['allowed', 'denied'] as const).map((answer) => ({
    name: answer,
    points: filled.map(({ size }) => [size, microsOf(answer, size)] as const),
  })),
})

export const growthTable = ({ found: { filled }, microsOf, cpuOf, pacedMs }: Findings): Table => ({
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

export const wayTable = ({ found: { ways, usual }, pacedMs, callsOf }: Findings): Table => ({
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

export const slowTable = ({ found: { slow } }: Findings): Table => ({
  title: 'Slow graphs',
  headings: [
    '',
    'checks',
    'answered',
    'other',
    'work',
    'most expensive us',
    'CPU us',
    'longest ms',
  ],
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
