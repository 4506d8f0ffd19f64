/** The full pipeline at fixed rates, up to far more than this machine can serve. */
import { layerContestant, preflight } from '../layers/contestants.ts'
import { layerOf } from '../layers/layers.ts'
import { startTarget } from '../layers/targets.ts'
import { startLoadProcesses } from '../load/processes.ts'
import { type Contestant, checkCounts } from '../measure/rounds.ts'
import { noneOf, rounded, sumOf } from '../measure/statistics.ts'
import { withUsage } from '../measure/usage.ts'
import { totalMicros } from '../processes/proc.ts'
import type { PublishedId } from '../published.ts'
import {
  type Figure,
  figure,
  type Scenario,
  type ScenarioContext,
  type Table,
} from '../scenario.ts'
import type { Backends } from '../stack/backends.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

/** Offered requests per second, and comparable published figures. */
const RATES: readonly { readonly rate: number; readonly beside: readonly PublishedId[] }[] = [
  { rate: 100, beside: ['spacetime-offered-100'] },
  { rate: 1_000, beside: ['spacetime-offered-1000', 'spacetime-sustained'] },
  { rate: 10_000, beside: ['spacetime-offered-10000', 'subzero-throughput'] },
  { rate: 50_000, beside: ['spacetime-offered-50000'] },
]
const SECONDS = { quick: 1.2, full: 15 } as const
const WARM_UP_RATE = 500
const WARM_UP_SECONDS = { quick: 1, full: 3 } as const
/** The published sustained load: above 1,000 a second, p99 below 50 ms, p999 below 100. */
const SUSTAINED = { rate: 1_000, p99Ms: 50, p999Ms: 100 } as const
/** Two processes send more than a gateway on the same machine can handle. */
const PROCESSES = 2
/** Half of the gateway's own limit, because its capacity is measured and not its refusals. */
const MAX_OUTSTANDING = 512
/** Far below the capacity of any machine. Up to this rate no request may be refused. */
const ALWAYS_SERVED_PER_SECOND = 100
const PERCENT = 100
const MICROS_PER_SECOND = 1_000_000
/** Cores that other processes may use without an effect on the results. */
const QUIET_CORES = 0.1

export const offeredLoad: Scenario = {
  id: 'offered-load',
  title: 'The full pipeline at fixed rates',
  measures:
    'Requests at random times (Poisson), 100 to 50,000 per second on average, whether earlier ' +
    'requests have a response or not. A latency starts when its request was due.',
  answers: RATES.flatMap(({ beside }) => beside),
  asserts: [
    'Every request has a response: 200 with the body of the origin, or 503.',
    'At 100 requests per second there is no 503.',
    'The origin received one request with the caller’s identity for each correct response.',
  ],
  runtimes: ['workerd', 'node'],
  seconds: { quick: 12, full: 75 },
  async run(context) {
    const { effort, runtime, shutdown, onProgress } = context
    onProgress('starting')
    const ground = await startGround(context)
    const { backends } = ground
    const tokens = await mintTokens(ground)
    const layers = [layerOf('full')]
    const target = await startTarget(runtime, { ...context, ground, tokens, layers })
    await preflight(target, layers, tokens)
    const gateway = layerContestant(target, layerOf('full'), { request: 'read', tokens })
    const measure = (rate: number, seconds: number) =>
      measureRate(gateway, backends, { rate, seconds, shutdown })
    onProgress('warming up')
    await measure(WARM_UP_RATE, WARM_UP_SECONDS[effort])
    const rates: RateFigures[] = []
    for (const { rate } of RATES) {
      onProgress(`offering ${rate.toLocaleString('en')}/s`)
      rates.push(await measure(rate, SECONDS[effort]))
    }
    await target.close()
    return {
      figures: rates.flatMap(figuresOf),
      checks: [
        { what: 'wrong responses', seen: noneOf(sumOf(rates, ({ sent }) => sent)) },
        { what: 'responses with 503, which do not count as correct', seen: shedText(rates) },
      ],
      tables: [tableOf(rates)],
      plots: [
        {
          id: 'reached',
          title: 'Offered and reached',
          kind: 'line',
          x: { title: 'offered a second', log: true },
          y: { title: 'correct responses a second', log: true },
          series: [{ name: 'full', points: rates.map(({ rate, reached }) => [rate, reached]) }],
        },
        {
          id: 'latency',
          title: 'Latency by offered rate',
          kind: 'line',
          x: { title: 'offered a second', log: true },
          y: { title: 'ms', log: true },
          series: (['p50Ms', 'p99Ms', 'p999Ms'] as const).map((key) => ({
            name: key.replace('Ms', ''),
            points: rates.map((each) => [each.rate, each[key]] as const),
          })),
        },
      ],
      notes: notesOf(rates),
      details: { seconds: SECONDS[effort], rates },
    }
  },
}

type RateFigures = Awaited<ReturnType<typeof measureRate>>

/** Measures one rate. Throws for a response that is neither correct nor a 503 of the gateway. */
async function measureRate(
  { title, url, pid, questions, expected }: Contestant,
  backends: Backends,
  {
    rate,
    seconds,
    shutdown,
  }: { rate: number; seconds: number; shutdown: ScenarioContext['shutdown'] },
) {
  const processes = await startLoadProcesses(PROCESSES)
  shutdown.defer(processes.close)
  const { result: offered, usage } = await withUsage([pid], backends, () =>
    processes.offer({
      url,
      questions,
      ratePerSecond: rate,
      seconds,
      spacing: 'poisson',
      maxOutstanding: MAX_OUTSTANDING,
      mayShed: rate > ALWAYS_SERVED_PER_SECOND,
    }),
  )
  await processes.close()
  const { right, sent, givenUp, shed, latencies, lateness } = offered
  // A refused or slow request may call Redis more than once, or reach the origin too late.
  const counted = { answers: right, aborted: sent - right, counts: usage.counts }
  const calls = [0, Number.POSITIVE_INFINITY] as const
  checkCounts(`${title} at ${rate}/s`, counted, { ...expected, redis: calls })
  const cores = (micros: number) => rounded(micros / MICROS_PER_SECOND / offered.seconds, 2)
  return {
    rate,
    sent,
    givenUp,
    shed,
    sentRate: rounded(sent / offered.seconds, 0),
    /** Correct responses per second, until the last response. */
    reached: rounded(right / offered.seconds, 0),
    /** Correct responses, as a share of all requests that were due. */
    okShare: rounded(right / offered.offered, 4),
    okOfSent: rounded(right / sent, 4),
    p50Ms: latencies.percentile(0.5),
    p95Ms: latencies.percentile(0.95),
    p99Ms: latencies.percentile(0.99),
    p999Ms: latencies.percentile(0.999),
    lateP50Ms: lateness.percentile(0.5),
    gatewayCores: cores(sumOf(usage.processes, totalMicros)),
    redisCores: cores(usage.redisMicros),
    loadCores: rounded(offered.loadCores, 2),
    otherCores: usage.otherCores,
  }
}

function figuresOf(figures: RateFigures): readonly Figure[] {
  const { rate, reached, okShare, p50Ms, p99Ms, p999Ms } = figures
  const { beside } = RATES.find((each) => each.rate === rate) ?? { beside: [] }
  const at = `${rate.toLocaleString('en')}/s offered`
  const isSustained = rate === SUSTAINED.rate
  const aim = (value: number) => (isSustained ? { aim: { at: 'most', value } as const } : {})
  const sustained = isSustained ? { beside: ['spacetime-sustained'] as const } : {}
  const id = (what: string) => `at-${rate}-${what}`
  return [
    figure(id('reached'), `${at}: reached`, reached, '1/s', { beside }),
    figure(id('p50'), `${at}: p50`, p50Ms, 'ms'),
    figure(id('p99'), `${at}: p99`, p99Ms, 'ms', { beside, ...aim(SUSTAINED.p99Ms) }),
    figure(id('p999'), `${at}: p999`, p999Ms, 'ms', { ...sustained, ...aim(SUSTAINED.p999Ms) }),
    figure(id('ok'), `${at}: answered correctly`, okShare * PERCENT, '%', { beside }),
  ]
}

function tableOf(rates: readonly RateFigures[]): Table {
  return {
    title: 'From the due time of a request to its correct response',
    headings: [
      ...['offered/s', 'sent/s', 'reached/s', 'p50 ms', 'p95 ms', 'p99 ms', 'p999 ms'],
      ...['ok %', 'of sent %', '503', 'load late ms', 'gateway', 'Redis', 'load'],
    ],
    rows: rates.map((each) => [
      each.rate.toLocaleString('en'),
      each.sentRate.toLocaleString('en'),
      each.reached.toLocaleString('en'),
      ...[each.p50Ms, each.p95Ms, each.p99Ms, each.p999Ms].map((ms) => ms.toFixed(2)),
      (each.okShare * PERCENT).toFixed(2),
      (each.okOfSent * PERCENT).toFixed(2),
      String(sumOf(Object.values(each.shed), (times) => times)),
      each.lateP50Ms.toFixed(2),
      each.gatewayCores.toFixed(2),
      each.redisCores.toFixed(2),
      each.loadCores.toFixed(2),
    ]),
  }
}

function notesOf(rates: readonly RateFigures[]): readonly string[] {
  const textOf = ({ rate }: RateFigures) => rate.toLocaleString('en')
  const saturated = rates.filter(({ givenUp }) => givenUp > 0).map(textOf)
  return [
    'ok: share of all requests that were due. gateway, Redis, load: cores that each of them used.',
    ...(saturated.length === 0
      ? []
      : [
          `At ${saturated.join(' and ')}/s the gateway is saturated: with ${MAX_OUTSTANDING} concurrent ` +
            'requests, a request that waited a second to be sent was given up. No latency includes it.',
        ]),
    ...rates
      .filter(({ otherCores }) => otherCores > QUIET_CORES)
      .map(
        (each) => `At ${textOf(each)}/s other processes used ${each.otherCores.toFixed(1)} cores.`,
      ),
  ]
}

function shedText(rates: readonly RateFigures[]): string {
  const texts = rates.flatMap(({ rate, shed }) =>
    Object.entries(shed).map(
      ([code, times]) => `${times} ${code} at ${rate.toLocaleString('en')}/s`,
    ),
  )
  return texts.length === 0 ? 'none' : texts.join(', ')
}
