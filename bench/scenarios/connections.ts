/** The whole pipeline from 10 to 300 connections, with payloads of 10 KB, and for a while. */
import { startRequestsGateway, warmUp } from '../requests/gateway.ts'
import { type Observed, observe } from '../requests/observe.ts'
import { payload, read } from '../requests/questions.ts'
import { inTurn, medianOf, noiseNotes, noneOf, sumOf } from '../requests/rounds.ts'
import type { Figure, Scenario, Table } from '../scenario.ts'
import { rounded } from '../statistics.ts'

const CONNECTIONS = [10, 50, 100, 200, 300] as const
const STEADY_CONNECTIONS = 50
const PAYLOAD_BYTES = 10_240
const CALLERS = 300
const EFFORTS = {
  quick: { rounds: 1, seconds: 0.5, payloadSeconds: 0.7, sustainedSeconds: 2 },
  full: { rounds: 3, seconds: 3, payloadSeconds: 3, sustainedSeconds: 20 },
} as const
const ONE_CALL = { origin: 1, redis: 1 } as const

type Name = `${(typeof CONNECTIONS)[number]}` | 'payload' | 'sustained'

export const connections: Scenario = {
  id: 'connections',
  title: 'Connections',
  measures:
    'The whole pipeline (ES256 token, admission, permission, validated query) under a closed load ' +
    'of 10 to 300 connections; with validated bodies of 10 KB; and 50 connections without a pause.',
  answers: ['ramparts-peak', 'ramparts-connections', 'ramparts-payload', 'ramparts-sustained'],
  asserts: [
    'Every answer is the origin’s, to the byte; 503 (`overloaded`, `dependency_unavailable`) is ' +
      'counted apart, nothing else is.',
    'Every answer has reached the origin, once, which was told who asks, with an assertion.',
    'Every answer has cost one call to Redis.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 11, full: 90 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const gateway = await startRequestsGateway(context, { isolates: { gateway: 'gateway' } })
    const holders = await gateway.mint(CALLERS)
    const url = gateway.urlOf('gateway')
    const reads = holders.map(({ credential }) => read(credential))
    const writes = holders.map(({ credential }) => payload(credential, PAYLOAD_BYTES))
    const measure = (name: Name) => {
      const isPayload = name === 'payload'
      const isLevel = !isPayload && name !== 'sustained'
      const count = isLevel ? Number(name) : STEADY_CONNECTIONS
      const seconds = isLevel ? effort.seconds : effort[`${name}Seconds`]
      context.onProgress(isLevel ? `${name} connections` : name)
      return observe(
        gateway,
        {
          ...{ url, connections: count, until: { seconds }, mayShed: true },
          questions: isPayload ? writes : reads,
        },
        ONE_CALL,
      )
    }
    await warmUp(gateway, { url, questions: [...reads, ...writes] })
    const levels = CONNECTIONS.map((count) => `${count}` as const)
    const rounds = await inTurn<Name, Observed>([...levels, 'payload'], effort.rounds, measure)
    const sustained = [await measure('sustained')]
    await gateway.close()

    const all: Readonly<Record<Name, readonly Observed[]>> = { ...rounds, sustained }
    const everything = Object.values(all).flat()
    return {
      figures: [
        {
          ...{
            id: 'peak',
            title: 'Most requests a second',
            unit: '1/s',
            beside: ['ramparts-peak'],
          },
          value: Math.max(...levels.map((name) => medianOf(all[name], 'perSecond', 0))),
        },
        ...levels.flatMap((name) => figuresOf(name, `${name} connections`, all[name])),
        ...figuresOf('payload', 'bodies of 10 KB, 50 connections', all.payload),
        ...figuresOf('sustained', `50 connections for ${effort.sustainedSeconds} s`, all.sustained),
      ],
      checks: [
        { what: 'answers that were wrong', seen: noneOf(sumOf(everything, ({ right }) => right)) },
        {
          what: 'requests at the origin that did not say who asks',
          seen: noneOf(sumOf(everything, ({ counts }) => counts.requests)),
        },
      ],
      plots: [
        {
          ...{ id: 'throughput', title: 'Throughput by connections', kind: 'line' },
          ...{ x: { title: 'connections' }, y: { title: 'requests a second' } },
          series: [{ name: 'whole pipeline', points: points(all, 'perSecond') }],
        },
        {
          ...{ id: 'latency', title: 'Latency by connections', kind: 'line' },
          ...{ x: { title: 'connections' }, y: { title: 'ms' } },
          series: [
            { name: 'p50', points: points(all, 'p50Ms') },
            { name: 'p99', points: points(all, 'p99Ms') },
          ],
        },
      ],
      tables: [tableOf(all)],
      notes: [
        'The load is closed and shares the cores with the gateway, the origin and Redis, so latency ' +
          'is about connections divided by requests a second.',
        'Each body of 10 KB is parsed and validated, member by member, before it is forwarded.',
        ...noiseNotes(everything.map(({ otherCores }) => otherCores)),
      ],
    }
  },
}

/** What others state of the same: not of all that is measured here. */
const BESIDE: Readonly<Record<string, Figure['beside']>> = {
  'payload-throughput': ['ramparts-payload'],
  'sustained-throughput': ['ramparts-sustained'],
  'sustained-share-ok': ['ramparts-sustained'],
  'c10-throughput': ['ramparts-connections'],
  'c300-throughput': ['ramparts-connections'],
  'c300-share-ok': ['ramparts-connections'],
  'c300-mean': ['ramparts-connections'],
}

function figuresOf(name: Name, title: string, rounds: readonly Observed[]): Figure[] {
  const id = /^\d/.test(name) ? `c${name}` : name
  const of = (what: string, unit: Figure['unit'], value: number): Figure => {
    const full = `${id}-${what.replaceAll(' ', '-')}`
    const beside = BESIDE[full]
    return { id: full, title: `${title}: ${what}`, value, unit, ...(beside && { beside }) }
  }
  return [
    of('throughput', '1/s', medianOf(rounds, 'perSecond', 0)),
    of('mean', 'ms', medianOf(rounds, 'meanMs')),
    of('p50', 'ms', medianOf(rounds, 'p50Ms')),
    of('p99', 'ms', medianOf(rounds, 'p99Ms')),
    of('share ok', '%', shareOk(rounds)),
  ]
}

function shareOk(rounds: readonly Observed[]): number {
  const right = sumOf(rounds, (round) => round.right)
  return rounded((100 * right) / (right + sumOf(rounds, (round) => round.shed)), 3)
}

const points = (
  all: Readonly<Record<Name, readonly Observed[]>>,
  key: 'perSecond' | 'p50Ms' | 'p99Ms',
) => CONNECTIONS.map((count) => [count, medianOf(all[`${count}`], key)] as const)

const tableOf = (all: Readonly<Record<Name, readonly Observed[]>>): Table => ({
  title: 'Whole pipeline by connections',
  headings: ['', 'req/s', 'mean ms', 'p50 ms', 'p99 ms', '% ok', 'CPU us'],
  rows: (Object.entries(all) as [Name, readonly Observed[]][]).map(([name, rounds]) => [
    name,
    medianOf(rounds, 'perSecond', 0).toLocaleString('en'),
    ...(['meanMs', 'p50Ms', 'p99Ms'] as const).map((key) => medianOf(rounds, key).toFixed(2)),
    shareOk(rounds).toFixed(2),
    medianOf(rounds, 'cpuMicros', 0).toFixed(0),
  ]),
})
