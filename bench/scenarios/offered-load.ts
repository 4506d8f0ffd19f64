/** The full pipeline at fixed rates, up to far more than this machine can do. */
import { startFullGateway } from '../gateway.ts'
import { MAX_OUTSTANDING, measureRate, type RateFigures } from '../offered-rates.ts'
import type { PublishedId } from '../published.ts'
import type { Figure, Scenario, Table } from '../scenario.ts'

/** Offered requests a second, and what others say of them. */
const RATES: readonly { readonly rate: number; readonly beside: readonly PublishedId[] }[] = [
  { rate: 100, beside: ['spacetime-offered-100'] },
  { rate: 1_000, beside: ['spacetime-offered-1000', 'spacetime-sustained'] },
  { rate: 10_000, beside: ['spacetime-offered-10000', 'subzero-throughput'] },
  { rate: 50_000, beside: ['spacetime-offered-50000'] },
]
const SECONDS = { quick: 1.2, full: 15 } as const
const WARM_UP_RATE = 500
const WARM_UP_SECONDS = { quick: 1, full: 3 } as const
/** What is published as sustained: above 1,000 a second, p99 below 50 ms, p999 below 100. */
const SUSTAINED = { rate: 1_000, p99Ms: 50, p999Ms: 100 } as const
const PERCENT = 100
/** Cores that others may use without it showing. */
const QUIET_CORES = 0.1

export const offeredLoad: Scenario = {
  id: 'offered-load',
  title: 'The full pipeline at fixed rates',
  measures:
    'Requests that come at random moments (Poisson) at 100 to 50,000 a second in the mean, whether ' +
    'those before are answered or not; a latency begins when its request was due.',
  answers: RATES.flatMap(({ beside }) => beside),
  asserts: [
    'Every request that is sent is answered, with 200 and the body of the origin or with 503.',
    'At 100 a second nobody is answered 503.',
    'The origin was asked once for each right answer, and told who asks.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 12, full: 80 },
  async run({ effort, directory, shutdown, onProgress }) {
    onProgress('starting')
    const gateway = await startFullGateway({ directory, shutdown })
    const rates: RateFigures[] = []
    onProgress('warming up')
    await measureRate(gateway, { rate: WARM_UP_RATE, seconds: WARM_UP_SECONDS[effort], shutdown })
    for (const { rate } of RATES) {
      onProgress(`offering ${rate.toLocaleString('en')}/s`)
      rates.push(await measureRate(gateway, { rate, seconds: SECONDS[effort], shutdown }))
    }
    await gateway.close()
    return {
      figures: rates.flatMap(figuresOf),
      checks: [
        { what: 'answers that were wrong', seen: `0 of ${total(rates, 'sent')}` },
        { what: 'answers with 503, which are not right but honest', seen: shedText(rates) },
      ],
      tables: [tableOf(rates)],
      plots: [
        {
          ...{ id: 'reached', title: 'Offered and reached', kind: 'line' },
          x: { title: 'offered a second', log: true },
          y: { title: 'answered right a second', log: true },
          series: [{ name: 'full', points: rates.map(({ rate, reached }) => [rate, reached]) }],
        },
        {
          ...{ id: 'latency', title: 'Latency by what is offered', kind: 'line' },
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

function figuresOf(figures: RateFigures): readonly Figure[] {
  const { rate, reached, okShare, p50Ms, p99Ms, p999Ms } = figures
  const { beside } = RATES.find((each) => each.rate === rate) ?? { beside: [] }
  const at = `${rate.toLocaleString('en')}/s offered`
  const isSustained = rate === SUSTAINED.rate
  const id = (what: string) => `at-${rate}-${what}`
  return [
    { id: id('reached'), title: `${at}: reached`, value: reached, unit: '1/s', beside },
    { id: id('p50'), title: `${at}: p50`, value: p50Ms, unit: 'ms' },
    {
      ...{ id: id('p99'), title: `${at}: p99`, value: p99Ms, unit: 'ms', beside },
      ...(isSustained && { aim: { at: 'most', value: SUSTAINED.p99Ms } }),
    },
    {
      ...{ id: id('p999'), title: `${at}: p999`, value: p999Ms, unit: 'ms' },
      ...(isSustained && {
        aim: { at: 'most', value: SUSTAINED.p999Ms },
        beside: ['spacetime-sustained'],
      }),
    },
    { id: id('ok'), title: `${at}: answered right`, value: okShare * PERCENT, unit: '%', beside },
  ]
}

function tableOf(rates: readonly RateFigures[]): Table {
  return {
    title: 'From when a request was due until its right answer',
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
      String(Object.values(each.shed).reduce((sum, times) => sum + times, 0)),
      each.lateP50Ms.toFixed(2),
      each.gatewayCores.toFixed(2),
      each.redisCores.toFixed(2),
      each.loadCores.toFixed(2),
    ]),
  }
}

function notesOf(rates: readonly RateFigures[]): readonly string[] {
  const late = rates
    .filter(({ givenUp }) => givenUp > 0)
    .map(({ rate }) => rate.toLocaleString('en'))
  return [
    'ok: of all that were due. gateway, Redis, load: cores that each of them took.',
    ...(late.length === 0
      ? []
      : [
          `At ${late.join(' and ')}/s offered it is saturated: with ${MAX_OUTSTANDING} requests under way, what waited for a second to be sent was given up, and is in no latency.`,
        ]),
    ...rates
      .filter(({ otherCores }) => otherCores > QUIET_CORES)
      .map(
        ({ rate, otherCores }) =>
          `At ${rate.toLocaleString('en')}/s other processes kept ${otherCores.toFixed(1)} cores busy.`,
      ),
  ]
}

function total(rates: readonly RateFigures[], key: 'sent'): string {
  return rates.reduce((sum, each) => sum + each[key], 0).toLocaleString('en')
}

function shedText(rates: readonly RateFigures[]): string {
  const texts = rates.flatMap(({ rate, shed }) =>
    Object.entries(shed).map(
      ([code, times]) => `${times} ${code} at ${rate.toLocaleString('en')}/s`,
    ),
  )
  return texts.length === 0 ? 'none' : texts.join(', ')
}
