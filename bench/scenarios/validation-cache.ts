/** Validating tokens that are remembered, that are new, and four of one to one of the other. */
import { type Asking, ask } from '../requests/ask.ts'
import { startRequestsGateway } from '../requests/gateway.ts'
import { type Observed, observe } from '../requests/observe.ts'
import { inTurn, medianOf, noiseNotes, noneOf, sumOf } from '../requests/rounds.ts'
import {
  ALGORITHMS,
  type Algorithm,
  type Counted,
  MIXES,
  type Mix,
  prepareValidations,
  refuseOtherCount,
} from '../requests/validations.ts'
import { TALLY_PATH } from '../requests/variants.ts'
import type { Figure, Scenario, Table } from '../scenario.ts'
import { rounded } from '../statistics.ts'

const CONNECTIONS = 20
/** Tokens of a measurement; those that are new are signed beforehand and used once. */
const EFFORTS = {
  quick: { rounds: 1, ES256: 1_000, RS256: 400, alone: 100 },
  full: { rounds: 5, ES256: 4_000, RS256: 1_600, alone: 400 },
} as const
const ASKED_NOTHING = { origin: 0, redis: 0 } as const
/** What is remembered is answered sooner, and the kernel counts CPU in steps of 10 ms. */
const CACHED_TIMES = 5
const WARM_UP_ROUNDS = 10

type Name = `${Algorithm}-${Mix}`
const MIX_NAMES = Object.keys(MIXES) as Mix[]
const NAMES = ALGORITHMS.flatMap((algorithm) =>
  MIX_NAMES.map((mix) => `${algorithm}-${mix}` as const),
)

interface Round {
  readonly busy: Observed
  readonly alone: Observed
  readonly counted: Counted
}

export const validationCache: Scenario = {
  id: 'validation-cache',
  title: 'Validation, cached and not',
  measures:
    'Authentication alone (no Redis, no origin) of tokens that the isolate remembers, of tokens ' +
    'that it sees for the first time, and of four to one; 20 connections, and one.',
  answers: ['subzero-cached', 'subzero-mixed', 'subzero-hit-ratio', 'ramparts-cached'],
  asserts: [
    'Every answer names the token’s subject, and says whether it was remembered, as it must be.',
    'The product’s own count of its memory’s hits and misses is exact.',
    'Neither Redis nor the origin is asked anything.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 9, full: 60 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const gateway = await startRequestsGateway(context, { isolates: { validation: 'validation' } })
    const url = gateway.urlOf('validation')
    const validations = {
      ES256: await prepareValidations(gateway, 'ES256'),
      RS256: await prepareValidations(gateway, 'RS256'),
    }
    const tally = async () => (await (await fetch(url + TALLY_PATH)).json()) as Counted
    const once = (asking: Pick<Asking, 'questions' | 'connections'>) =>
      observe(gateway, { url, until: 'once', ...asking }, ASKED_NOTHING)

    for (const algorithm of ALGORITHMS) {
      const { known, of } = validations[algorithm]
      await ask({ url, questions: known, connections: 1, until: 'once' })
      for (let round = 0; round < WARM_UP_ROUNDS; round++)
        await ask({ url, questions: await of('mixed', 200), connections: 20, until: 'once' })
    }
    async function measure(name: Name): Promise<Round> {
      const [algorithm, mix] = name.split('-') as [Algorithm, Mix]
      const { of } = validations[algorithm]
      const before = await tally()
      const busy = await once({
        questions: await of(mix, effort[algorithm] * (mix === 'cached' ? CACHED_TIMES : 1)),
        connections: CONNECTIONS,
      })
      const alone = await once({ questions: await of(mix, effort.alone), connections: 1 })
      const after = await tally()
      const counted = { hits: after.hits - before.hits, misses: after.misses - before.misses }
      refuseOtherCount(mix, busy.right + alone.right, counted)
      return { busy, alone, counted }
    }
    const rounds = await inTurn(NAMES, effort.rounds, (name, round) => {
      context.onProgress(`round ${round} of ${effort.rounds}: ${name}`)
      return measure(name)
    })
    await gateway.close()
    const all = Object.values(rounds).flat()
    return {
      figures: NAMES.flatMap((name) => figuresOf(name, rounds[name])),
      checks: [
        {
          what: 'answers that were wrong, or remembered when they must not be, or not when they must',
          seen: noneOf(sumOf(all, ({ busy, alone }) => busy.right + alone.right)),
        },
        {
          what: 'hits and misses that the memory counted',
          seen: `${sumOf(all, ({ counted }) => counted.hits).toLocaleString('en')} and ${sumOf(
            all,
            ({ counted }) => counted.misses,
          ).toLocaleString('en')}, as many as there had to be`,
        },
      ],
      plots: [
        {
          ...{ id: 'cpu', title: 'CPU of a validation', kind: 'bar' },
          ...{ x: { title: 'tokens that are remembered' }, y: { title: 'us' } },
          categories: MIX_NAMES,
          series: ALGORITHMS.map((algorithm) => ({
            name: algorithm,
            points: MIX_NAMES.map((mix) => cpuOf(rounds[`${algorithm}-${mix}`])),
          })),
        },
      ],
      tables: [tableOf(rounds)],
      notes: [
        'CPU is that of the whole workerd process, so it holds what HTTP costs; the difference between ' +
          'rows is the validation itself.',
        'What an isolate remembers of refusals is measured by the scenario `refusals`.',
        'The hit ratio is what was sent, exactly: the memory forgets nothing that is in use. What it ' +
          'would be in production is up to how often callers come back within five minutes.',
        ...noiseNotes(all.map(({ busy }) => busy.otherCores)),
      ],
    }
  },
}

const cpuOf = (rounds: readonly Round[]) =>
  medianOf(
    rounds.map(({ busy }) => busy),
    'cpuMicros',
    1,
  )

const hitRatioOf = (rounds: readonly Round[]) => {
  const hits = sumOf(rounds, ({ counted }) => counted.hits)
  return rounded((100 * hits) / (hits + sumOf(rounds, ({ counted }) => counted.misses)), 2)
}

/** What others state of the same: not of all that is measured here. */
const BESIDE: Readonly<Record<string, Figure['beside']>> = {
  'cached-p50': ['subzero-cached'],
  'cached-p95': ['subzero-cached'],
  'cached-p99': ['subzero-cached'],
  'cached-p50-alone': ['ramparts-cached'],
  'mixed-p50': ['subzero-mixed'],
  'mixed-p95': ['subzero-mixed'],
  'mixed-hit-ratio': ['subzero-hit-ratio'],
}

function figuresOf(name: Name, rounds: readonly Round[]): Figure[] {
  const [algorithm, mix] = name.split('-') as [Algorithm, Mix]
  const busy = rounds.map((round) => round.busy)
  const alone = rounds.map((round) => round.alone)
  const of = (what: string, unit: Figure['unit'], value: number): Figure => {
    const name = `${mix}-${what.replaceAll(' ', '-')}`
    const id = `${algorithm.toLowerCase()}-${name}`
    const beside = BESIDE[name]
    return { id, title: `${algorithm}, ${mix}: ${what}`, value, unit, ...(beside && { beside }) }
  }
  return [
    of('p50', 'ms', medianOf(busy, 'p50Ms')),
    of('p95', 'ms', medianOf(busy, 'p95Ms')),
    of('p99', 'ms', medianOf(busy, 'p99Ms')),
    of('p50 alone', 'ms', medianOf(alone, 'p50Ms')),
    of('cpu', 'us', cpuOf(rounds)),
    of('hit ratio', '%', hitRatioOf(rounds)),
  ]
}

const tableOf = (rounds: Readonly<Record<Name, readonly Round[]>>): Table => ({
  title: 'Validation, 20 connections and one',
  headings: ['', 'req/s', 'p50 ms', 'p95 ms', 'p99 ms', 'alone p50', 'CPU us', '% hits'],
  rows: NAMES.map((name) => {
    const busy = rounds[name].map((round) => round.busy)
    const alone = rounds[name].map((round) => round.alone)
    return [
      name.replace('-', ', '),
      medianOf(busy, 'perSecond', 0).toLocaleString('en'),
      ...(['p50Ms', 'p95Ms', 'p99Ms'] as const).map((key) => medianOf(busy, key).toFixed(2)),
      medianOf(alone, 'p50Ms').toFixed(2),
      cpuOf(rounds[name]).toFixed(0),
      hitRatioOf(rounds[name]).toFixed(1),
    ]
  }),
})
