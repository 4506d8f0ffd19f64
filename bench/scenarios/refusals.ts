/** Cost of refusals, without a call to Redis or to the origin, and with one. */
import { type Contestant, measureRounds, type Summary } from '../measure/rounds.ts'
import { noiseNotes, noneOf, ratioOf, sumOf } from '../measure/statistics.ts'
import { untilQuiet } from '../measure/usage.ts'
import { prepareRefusals, type Refusal } from '../refusals/refusals.ts'
import type { Figure, Scenario, Table } from '../scenario.ts'

const CONNECTIONS = 20
const EFFORTS = {
  quick: { rounds: 1, seconds: 0.4, aloneSeconds: 0.4, warmUpSeconds: 0.3 },
  full: { rounds: 5, seconds: 0.6, aloneSeconds: 2, warmUpSeconds: 0.5 },
} as const
/** The kinds of a quick run. */
const QUICK: readonly string[] = [
  ...['no-token', 'forged', 'no-route', 'ambiguous', 'exhausted', 'throttled', 'crowded'],
  ...['no-permission', 'bad-input'],
]
/** Target as a share of passthrough's CPU: a refused flood must cost less than an admitted one. */
const AIM = 0.6
const BASELINE = 'passthrough'
/** Kinds whose latency is also measured with one connection. */
const ALONE: readonly string[] = ['no-token', 'forged', 'throttled', 'exhausted', 'signatures']

export const refusals: Scenario = {
  id: 'refusals',
  title: 'Refusals',
  measures:
    'CPU of the gateway for each kind of refusal, as a ratio to a bare proxy that forwards the ' +
    'same request, in turn, at 20 connections; and the latency of a refusal at 1 connection.',
  answers: ['ramparts-blocked', 'ramparts-cached'],
  asserts: [
    'Every response has the status and the code of its refusal.',
    'No refused request reached the origin, and every request of passthrough did.',
    'Refusals that need no call to Redis made none, the others one each. Counting and refreshing ' +
      'after a response may add a few.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 12, full: 110 },

  async run(context) {
    const { rounds, seconds, warmUpSeconds, aloneSeconds } = EFFORTS[context.effort]
    const { onProgress } = context
    const { gateway, list: all, good } = await prepareRefusals(context)
    const { pid, backends } = gateway
    const isQuick = context.effort === 'quick'
    const list = all.filter(({ id }) => !isQuick || QUICK.includes(id))
    const baseline: Contestant = {
      ...{ id: BASELINE, title: BASELINE, pid, url: gateway.urlOf(BASELINE), questions: [good] },
      expected: { origin: 1, redis: 0, identified: false },
    }
    const contestants = [baseline, ...list.map((kind) => contestantOf(kind))]
    function contestantOf({
      id,
      title,
      isolate,
      calls,
      callsBeside,
      prepare,
    }: Refusal): Contestant {
      let restore: (() => Promise<void>) | undefined
      return {
        ...{ id, title, pid, url: gateway.urlOf(isolate), questions: [] },
        expected: { origin: 0, redis: calls, redisBeside: callsBeside },
        async prepare() {
          const { question, done } = await prepare()
          restore = done
          await untilQuiet(backends)
          return [question]
        },
        check: async () => restore?.(),
      }
    }
    const common = { backends, onProgress, heatSeconds: warmUpSeconds }
    const summaries = await measureRounds(contestants, {
      ...{ ...common, rounds, seconds },
      pace: { connections: CONNECTIONS },
    })
    onProgress('one connection')
    const alone = await measureRounds(
      contestants.filter(({ id }) => ALONE.includes(id)),
      { ...common, rounds: 1, seconds: aloneSeconds, pace: { connections: 1 } },
    )
    await gateway.close()

    const base = summaries.find(({ id }) => id === BASELINE)?.rounds ?? []
    const ratioTo = (id: string) =>
      ratioOf(summaries.find((each) => each.id === id)?.rounds ?? [], base, 'cpuMicros')
    const answered = (some: readonly Summary[]) =>
      noneOf(sumOf(some, (each) => sumOf(each.rounds, ({ requests }) => requests)))
    return {
      figures: [
        ...list.map((refusal) => ratioFigure(refusal, ratioTo(refusal.id))),
        ...list
          .filter(({ id }) => ALONE.includes(id))
          .flatMap((kind) =>
            aloneFigures(
              kind,
              alone.find(({ id }) => id === kind.id),
            ),
          ),
      ],
      checks: [
        {
          what: 'refused requests that reached the origin',
          seen: answered([...summaries.filter(({ id }) => id !== BASELINE), ...alone]),
        },
        { what: 'answers that were wrong', seen: answered(summaries) },
      ],
      plots: [
        {
          id: 'cpu',
          title: 'CPU of a refusal, passthrough is 1',
          kind: 'bar',
          x: { title: 'refused for' },
          y: { title: 'ratio to passthrough' },
          categories: list.map(({ title }) => title),
          series: [{ name: 'CPU', points: list.map(({ id }) => ratioTo(id)) }],
        },
      ],
      tables: [tableOf(list, summaries)],
      notes: [
        'The isolate caches the refusal of a revoked token for ten seconds, and of an exhausted limit ' +
          'for five. The revocation of a subject is decided in Redis each time.',
        'Throttled and banned addresses send bad credentials and are refused from the isolate’s ' +
          'memory. All other bad credentials come from an exempt address, so each is verified.',
        ...(isQuick ? [`A quick run skips ${all.length - list.length} kinds of refusals.`] : []),
        ...noiseNotes(summaries),
      ],
    }
  },
}

const ratioFigure = ({ id, title, calls }: Refusal, value: number): Figure => ({
  ...{ id: `${id}-cpu`, title: `${title}: CPU to passthrough`, value, unit: 'ratio' },
  ...(calls === 0 && { aim: { at: 'most', value: AIM } as const }),
})

function aloneFigures({ id, title }: Pick<Refusal, 'id' | 'title'>, alone: Summary | undefined) {
  const beside: Figure['beside'] = id === 'exhausted' ? ['ramparts-cached'] : ['ramparts-blocked']
  return (['p50Ms', 'p99Ms'] as const).map((key): Figure => {
    const name = key.replace('Ms', '')
    const value = alone?.[key] ?? 0
    return { id: `${id}-${name}`, title: `${title}, alone: ${name}`, value, unit: 'ms', beside }
  })
}

function tableOf(list: readonly Refusal[], summaries: readonly Summary[]): Table {
  const [base] = summaries
  return {
    title: 'Refusals',
    headings: ['', 'CPU us', 'ratio', 'req/s', 'Redis calls'],
    rows: summaries.map(({ id, title, cpuMicros, requestsPerSecond, rounds }) => [
      title,
      cpuMicros.toFixed(0),
      ratioOf(rounds, base?.rounds ?? [], 'cpuMicros').toFixed(2),
      requestsPerSecond.toLocaleString('en'),
      String(list.find((kind) => kind.id === id)?.calls ?? 0),
    ]),
  }
}
