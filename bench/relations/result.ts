/** Computes the figures of the relation measurements. Pure. */
import { medianOf, noiseNotes, noneOf, ratioOf, sumOf } from '../requests/rounds.ts'
import type { Check, Figure, ScenarioResult } from '../scenario.ts'
import { rounded } from '../statistics.ts'
import type { Filled } from './fill.ts'
import { WAYS, type WayId } from './measure-gateway.ts'
import { type Found, QUANTILES, type Quantile, type Summary, summaryOf } from './summary.ts'
import { countText, growthPlot, growthTable, slowTable, wayTable } from './tables.ts'

const MICROS_PER_MS = 1_000
/** Target for the ratio between the most and the fewest tuples. */
const FLAT = { at: 'most', value: 1.2 } as const
/** Redis runs nothing else during a script. */
const BLOCKING_MS = { at: 'most', value: 5 } as const
const ONE_CALL = { at: 'most', value: 1 } as const
const BESIDE = ['subzero-permissions'] as const

/** Returns the result. Throws a `RangeError` if a measurement is missing. */
export function resultOf(found: Found): ScenarioResult {
  const summary = summaryOf(found)
  const { filled, checks, slow, ways, paced } = found
  const all = Object.values(ways).flat()
  return {
    figures: [
      ...gatewayFigures(summary),
      ...checkFigures(summary),
      ...growthFigures(summary),
      ...slowFigures(found),
    ],
    checks: checksOf(found),
    plots: [growthPlot(summary)],
    tables: [wayTable(summary), growthTable(summary), slowTable(summary)],
    notes: [
      'p50, p95 and p99 are of requests at a fixed rate, each to the next of all ways and sizes; CPU and ' +
        'requests a second are of a closed load, one way after the other.',
      'All sizes are tenants of one Redis, asked in turn. Times of checks are Redis’ own, by the ' +
        'clock: on a machine that is busy with something else they are longer, but their CPU is not.',
      ...(paced.shed > 0 ? [`${paced.shed} requests were refused with 503: a busy machine.`] : []),
      ...noiseNotes(all.map(({ otherCores }) => otherCores)),
    ],
    details: { filled, checks, slow: slow.map(({ graph: { id }, round }) => ({ id, ...round })) },
  }
}

function gatewayFigures({ found: { ways, usual, paced }, pacedMs, callsOf }: Summary): Figure[] {
  // The published figures include a cache, so the cached decisions come first.
  const decided = ['cached', 'cold'] as const
  return [
    ...decided.flatMap((way) =>
      (Object.keys(QUANTILES) as Quantile[]).map(
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
        ...{ unit: 'ratio', value: ratioOf(ways[way], ways.unrelated, 'cpuMicros') },
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

const checkFigures = ({ found: { usual }, microsOf }: Summary): Figure[] => [
  {
    ...{ id: 'check', title: `a check in Redis, ${countText(usual)} tuples`, unit: 'us' },
    value: microsOf('allowed', usual),
  },
  {
    ...{ id: 'check-denied', title: `a check in Redis that denies, ${countText(usual)} tuples` },
    ...{ unit: 'us', value: microsOf('denied', usual) },
  },
]

function growthFigures({ found: { filled }, roundsOf, pacedMs }: Summary): Figure[] {
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
  const dearest = Math.max(...slow.map(({ round }) => round.cpuMicros))
  return [
    {
      ...{
        id: 'dearest-cpu',
        title: 'the dearest check of a graph made to be slow: CPU',
        unit: 'ms',
      },
      ...{ value: rounded(dearest / MICROS_PER_MS, 2), aim: BLOCKING_MS },
    },
    {
      ...{ id: 'slowest', title: 'the longest check of a graph made to be slow', unit: 'ms' },
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
    seen: noneOf(sumOf(Object.values(ways).flat(), ({ right }) => right) + paced.right),
  },
  {
    what: 'wrong decisions about graphs made to be slow (`unknown` is none)',
    seen: noneOf(sumOf(slow, ({ round }) => round.checks)),
  },
  ...(['unrelated', 'cold', 'cached'] as const).map((way) => ({
    what: `${WAYS[way].title}: scripts of Redis in a call`,
    seen: medianOf(ways[way], 'scripts').toFixed(2),
  })),
]
