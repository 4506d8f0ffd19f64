/** What it costs to refuse: without a call to Redis or to the origin, and with one. */
import { ask } from '../requests/ask.ts'
import { type Observed, observe } from '../requests/observe.ts'
import { prepareRefusals, type Refusal } from '../requests/refusals.ts'
import { inTurn, medianOf, noiseNotes, noneOf, ratioOf, sumOf } from '../requests/rounds.ts'
import type { Figure, Scenario, Table } from '../scenario.ts'
import { untilQuiet } from '../usage.ts'

const CONNECTIONS = 20
const EFFORTS = {
  quick: { rounds: 1, seconds: 0.4, aloneSeconds: 0.4, warmUp: 500 },
  full: { rounds: 5, seconds: 0.6, aloneSeconds: 2, warmUp: 2_000 },
} as const
/** What a quick run has time for. */
const QUICK: readonly string[] = [
  ...['no-token', 'forged', 'no-route', 'ambiguous', 'exhausted', 'throttled', 'crowded'],
  ...['no-permission', 'bad-input'],
]
/** Of passthrough's CPU: a flood that is refused is to cost less than one that is let through. */
const AIM = 0.6
const BASELINE = 'passthrough'
const LET_THROUGH = { origin: 1, redis: 0, identified: false } as const
/** Whose latency alone is measured. */
const ALONE: readonly string[] = ['no-token', 'forged', 'throttled', 'exhausted', 'signatures']

export const refusals: Scenario = {
  id: 'refusals',
  title: 'Refusals',
  measures:
    'CPU of the gateway for each kind of refusal, as a ratio to a bare proxy that lets the same ' +
    'request through, in turn, 20 connections; and the latency of a refusal alone, 1 connection.',
  answers: ['ramparts-blocked', 'ramparts-cached'],
  asserts: [
    'Every answer has the status and the code of its refusal.',
    'No refused request has reached the origin, and every one of passthrough has.',
    'Refusals that need no call to Redis have made none, the others one each; what is remembered, ' +
      'counted or looked up again behind answers may make one now and then.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 12, full: 110 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const { gateway, list: all, good } = await prepareRefusals(context)
    const isQuick = context.effort === 'quick'
    const list = all.filter(({ id }) => !isQuick || QUICK.includes(id))
    const kinds = new Map(list.map((kind) => [kind.id, kind]))
    const warm = new Set<string>()
    const baseline = { url: gateway.urlOf(BASELINE), questions: [good] }

    async function measure(id: string, connections: number, seconds: number): Promise<Observed> {
      const kind = kinds.get(id)
      const load = { connections, until: { seconds } }
      if (kind === undefined) return observe(gateway, { ...baseline, ...load }, LET_THROUGH)
      const { question, done } = await kind.prepare()
      const url = gateway.urlOf(kind.isolate)
      const expected = { origin: 0, redis: kind.calls, redisBeside: kind.callsBeside } as const
      await untilQuiet(gateway.backends)
      const asking = { url, questions: [question], ...load }
      if (!warm.has(id)) {
        const questions = Array.from({ length: effort.warmUp }, () => question)
        await ask({ url, questions, connections: CONNECTIONS, until: 'once' })
      }
      warm.add(id)
      await untilQuiet(gateway.backends)
      const observed = await observe(gateway, asking, expected).catch((error: Error) => {
        throw new Error(`${kind.title}: ${error.message}`)
      })
      await done?.()
      return observed
    }
    const names = [BASELINE, ...kinds.keys()]
    const rounds = await inTurn(names, effort.rounds, (id, round) => {
      if (id === BASELINE) context.onProgress(`round ${round} of ${effort.rounds}`)
      return measure(id, CONNECTIONS, effort.seconds)
    })
    context.onProgress('one connection')
    const solo = ALONE.filter((id) => kinds.has(id))
    const alone = await inTurn([BASELINE, ...solo], 1, (id) => measure(id, 1, effort.aloneSeconds))
    await gateway.close()

    const measured = Object.entries(rounds).flatMap(([, each]) => each)
    const refused = [...Object.entries(rounds), ...Object.entries(alone)]
      .filter(([id]) => id !== BASELINE)
      .flatMap(([, each]) => each)
    const ratioTo = (id: string) => ratioOf(rounds[id] ?? [], rounds[BASELINE] ?? [], 'cpuMicros')
    return {
      figures: [
        ...list.map((refusal) => ratioFigure(refusal, ratioTo(refusal.id))),
        ...list
          .filter(({ id }) => ALONE.includes(id))
          .flatMap((kind) => aloneFigures(kind, alone[kind.id] ?? [])),
      ],
      checks: [
        {
          what: 'refused requests that reached the origin',
          seen: noneOf(sumOf(refused, ({ right }) => right)),
        },
        { what: 'answers that were wrong', seen: noneOf(sumOf(measured, ({ right }) => right)) },
      ],
      plots: [
        {
          ...{ id: 'cpu', title: 'CPU of a refusal, passthrough is 1', kind: 'bar' },
          ...{ x: { title: 'refused for' }, y: { title: 'ratio to passthrough' } },
          categories: list.map(({ title }) => title),
          series: [{ name: 'CPU', points: list.map(({ id }) => ratioTo(id)) }],
        },
      ],
      tables: [tableOf(list, rounds)],
      notes: [
        'A revoked token that the isolate has refused is refused again without a call for ten seconds, ' +
          'an exhausted limit for five. Of a token that was cut off Redis is asked each time.',
        'Throttled and banned addresses send bad credentials and are told so out of the isolate’s ' +
          'memory. All other bad credentials come from an address of which nothing is counted, so ' +
          'that each is looked at.',
        ...(isQuick
          ? [`A quick run leaves out ${all.length - list.length} kinds of refusal.`]
          : []),
        ...noiseNotes(measured.map(({ otherCores }) => otherCores)),
      ],
    }
  },
}

const ratioFigure = ({ id, title, calls }: Refusal, value: number): Figure => ({
  ...{ id: `${id}-cpu`, title: `${title}: CPU to passthrough`, value, unit: 'ratio' },
  ...(calls === 0 && { aim: { at: 'most', value: AIM } as const }),
})

function aloneFigures({ id, title }: Pick<Refusal, 'id' | 'title'>, rounds: readonly Observed[]) {
  const beside: Figure['beside'] = id === 'exhausted' ? ['ramparts-cached'] : ['ramparts-blocked']
  return (['p50Ms', 'p99Ms'] as const).map((key): Figure => {
    const name = key.replace('Ms', '')
    const value = medianOf(rounds, key)
    return { id: `${id}-${name}`, title: `${title}, alone: ${name}`, value, unit: 'ms', beside }
  })
}

function tableOf(
  kinds: readonly Refusal[],
  rounds: Readonly<Record<string, readonly Observed[]>>,
): Table {
  const base = rounds[BASELINE] ?? []
  const rowOf = (title: string, each: readonly Observed[], calls: string) => [
    title,
    medianOf(each, 'cpuMicros', 0).toFixed(0),
    ratioOf(each, base, 'cpuMicros').toFixed(2),
    medianOf(each, 'perSecond', 0).toLocaleString('en'),
    calls,
  ]
  return {
    title: 'Refusals',
    headings: ['', 'CPU us', 'ratio', 'req/s', 'Redis calls'],
    rows: [
      rowOf(BASELINE, base, '0'),
      ...kinds.map(({ id, title, calls }) => rowOf(title, rounds[id] ?? [], String(calls))),
    ],
  }
}
