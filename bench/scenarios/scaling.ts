/** One gateway, two, and four: what a request costs when several share one Redis. */
import { measureScaling, type ScalingLoad, type ScalingRound } from '../scaling/measure.ts'
import type { Effort, Figure, Scenario, ScenarioResult } from '../scenario.ts'
import { startFleet } from '../sessions/fleet.ts'
import { median, ratio, rounded } from '../statistics.ts'

const PROCESSES = [1, 2, 4] as const
/** Of all at once: each has to compile what it runs often. */
const WARM_UP_SECONDS = 3

const PLANS: Readonly<Record<Effort, ScalingLoad & { readonly rounds: number }>> = {
  quick: { connections: 24, seconds: 1, rounds: 1 },
  full: { connections: 24, seconds: 4, rounds: 5 },
}

export const scaling: Scenario = {
  id: 'scaling',
  title: 'Several gateways over one Redis',
  measures:
    'The same closed load at one, two and four processes of the full pipeline, in turn: requests ' +
    'a second, and the CPU that gateways, Redis and the load take for a thousand requests.',
  answers: ['subzero-scaling', 'subzero-throughput'],
  asserts: [
    'Every answer is 200 with the body of the origin.',
    'Each request reaches the origin once, and asks Redis once.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 12, full: 75 },
  async run(context) {
    const { rounds, ...load } = PLANS[context.effort]
    const fleet = await startFleet(context, Math.max(...PROCESSES))
    context.onProgress('warming up')
    await measureScaling(fleet, Math.max(...PROCESSES), { ...load, seconds: WARM_UP_SECONDS })
    const done: ScalingRound[] = []
    for (let round = 1; round <= rounds; round++) {
      for (const processes of PROCESSES) {
        context.onProgress(`round ${round} of ${rounds}: ${processes}`)
        done.push(await measureScaling(fleet, processes, load))
      }
    }
    return resultOf(done)
  },
}

type Means = Omit<ScalingRound, 'requests'>

/** Medians of the rounds at so many. */
function mediansOf(rounds: readonly ScalingRound[], processes: number): Means {
  const these = rounds.filter((round) => round.processes === processes)
  const of = (name: keyof ScalingRound, digits: number) =>
    rounded(median(these.map((round) => round[name])), digits)
  return {
    processes,
    perSecond: of('perSecond', 0),
    ...{ p50Ms: of('p50Ms', 2), p99Ms: of('p99Ms', 2) },
    ...{ gatewayCpu: of('gatewayCpu', 4), redisCpu: of('redisCpu', 4), loadCpu: of('loadCpu', 4) },
    otherCores: of('otherCores', 2),
  }
}

function resultOf(rounds: readonly ScalingRound[]): ScenarioResult {
  const each = PROCESSES.map((processes) => mediansOf(rounds, processes))
  const [one = mediansOf(rounds, 1)] = each
  const answers = rounds.reduce((sum, { requests }) => sum + requests, 0)
  const categories = each.map(({ processes }) => String(processes))
  return {
    figures: each.flatMap((means) => figuresOf(means, one)),
    checks: [{ what: 'answers that were wrong', seen: `0 of ${answers.toLocaleString('en')}` }],
    tables: [
      {
        title: 'Closed load; medians of the rounds; CPU in seconds for a thousand requests',
        headings: [
          ...['gateways', 'req/s', 'p50 ms', 'p99 ms', 'CPU gateways', 'CPU Redis', 'CPU load'],
          ...['efficiency %', 'other cores'],
        ],
        rows: each.map((means) => [
          String(means.processes),
          String(means.perSecond),
          ...[means.p50Ms, means.p99Ms].map((ms) => ms.toFixed(2)),
          ...[means.gatewayCpu, means.redisCpu, means.loadCpu].map((cpu) => cpu.toFixed(3)),
          efficiencyOf(means, one).toFixed(1),
          means.otherCores.toFixed(1),
        ]),
      },
    ],
    plots: [
      {
        id: 'cpu',
        title: 'CPU of a thousand requests',
        kind: 'stacked',
        x: { title: 'gateways' },
        y: { title: 'seconds' },
        categories,
        series: (['gatewayCpu', 'redisCpu', 'loadCpu'] as const).map((name) => ({
          name: name.replace('Cpu', ''),
          points: each.map((means) => means[name]),
        })),
      },
    ],
    notes: [
      'All of it shares the cores of one machine, so that more gateways cannot answer more requests a ' +
        'second than those cores do: that throughput grows with machines is not shown here. What is: ' +
        'whether a request costs more when several gateways share one Redis.',
      'Efficiency is the CPU of gateways for a request at one, divided by that at several.',
    ],
    details: { rounds },
  }
}

/** 100: a request takes no more CPU of gateways than at one. */
export function efficiencyOf(
  { gatewayCpu }: Pick<Means, 'gatewayCpu'>,
  one: Pick<Means, 'gatewayCpu'>,
): number {
  return rounded(ratio(one.gatewayCpu, gatewayCpu) * 100, 1)
}

function figuresOf(means: Means, one: Means): readonly Figure[] {
  const { processes } = means
  const title = processes === 1 ? 'one gateway' : `${processes} gateways`
  const id = `at-${processes}`
  return [
    {
      id: `${id}-rate`,
      title: `${title}: requests`,
      value: means.perSecond,
      unit: '1/s',
      // Theirs is of one instance.
      ...(processes === 1 && { beside: ['subzero-throughput'] }),
    },
    {
      id: `${id}-cpu`,
      title: `${title}: CPU of gateways for 1,000 requests`,
      value: means.gatewayCpu,
      unit: 's',
    },
    {
      id: `${id}-redis-cpu`,
      title: `${title}: CPU of Redis for 1,000 requests`,
      value: means.redisCpu,
      unit: 's',
    },
    ...(processes === 1
      ? []
      : [
          {
            id: `${id}-efficiency`,
            title: `${title}: efficiency`,
            value: efficiencyOf(means, one),
            unit: '%',
            beside: ['subzero-scaling'],
          } as const,
        ]),
  ]
}
