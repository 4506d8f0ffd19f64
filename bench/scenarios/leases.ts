/** One hot caller: asked about each time, admitted out of what is held, and not asked about at all. */
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { ask } from '../requests/ask.ts'
import { startRequestsGateway, warmUp } from '../requests/gateway.ts'
import { type Observed, observe } from '../requests/observe.ts'
import { read } from '../requests/questions.ts'
import { inTurn, medianOf, noiseNotes, noneOf, ratioOf, sumOf } from '../requests/rounds.ts'
import type { Figure, Scenario } from '../scenario.ts'
import { untilQuiet } from '../usage.ts'

const CONNECTIONS = 20
const HEAT_SECONDS = 0.4
const EFFORTS = {
  quick: { rounds: 1, seconds: 1 },
  full: { rounds: 5, seconds: 4 },
} as const
/** Added to each call to Redis. */
const FAR_MS = 20
/** Calls for an answer that is given out of what is held. */
const MOST_CALLS = 0.01
const NEAR = ['passthrough', 'platform', 'unasked', 'gateway', 'leased'] as const
const FAR = ['far', 'leased-far'] as const
type Name = (typeof NEAR)[number] | (typeof FAR)[number]
const TITLES: Readonly<Record<Name, string>> = {
  passthrough: 'bare proxy',
  platform: 'proxy with all calls to the platform',
  unasked: 'pipeline without admission',
  gateway: 'strict',
  leased: 'leased',
  far: `strict, Redis ${FAR_MS} ms away`,
  'leased-far': `leased, Redis ${FAR_MS} ms away`,
}
const ASKS_NOBODY = { origin: 1, redis: 0 } as const
const EXPECTED = {
  passthrough: { ...ASKS_NOBODY, identified: false },
  platform: ASKS_NOBODY,
  unasked: ASKS_NOBODY,
  gateway: { origin: 1, redis: 1 },
  // How many there are is judged by their share.
  leased: { ...ASKS_NOBODY, redisBeside: Number.POSITIVE_INFINITY },
  far: { origin: 1, redis: 1 },
  'leased-far': { ...ASKS_NOBODY, redisBeside: Number.POSITIVE_INFINITY },
} as const

export const leases: Scenario = {
  id: 'leases',
  title: 'One hot caller, strict and leased',
  measures:
    'One caller at 20 connections under one high limit: asked about with every request, admitted out ' +
    'of units that were taken ahead (revocations at most a second late), and with an admission that asks ' +
    'nobody; a bare proxy in turn, and one that asks of the platform what the pipeline asks of it, and ' +
    `decides nothing. Then again with ${FAR_MS} ms added to each answer of Redis.`,
  answers: [],
  asserts: [
    'Every answer is the origin’s, to the byte, and has reached it once.',
    'The strict pipeline has made one call to Redis for each answer.',
    'The leased one has made at most one for each hundred, renewals included.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 0, full: 190 },

  async run(context) {
    const { rounds: count, seconds } = EFFORTS[context.effort]
    const gateway = await startRequestsGateway(context, {
      isolates: Object.fromEntries([...NEAR, ...FAR].map((name) => [name, name])),
      async variablesOf({ redis }) {
        const { hostname: host, port } = new URL(redis.url)
        const proxy = await startFaultProxy({ target: { host, port: Number(port) } })
        context.shutdown.defer(proxy.close)
        await proxy.set({ kind: 'latency', ms: FAR_MS })
        return { FAR_REDIS_URL: proxy.url }
      },
    })
    const [caller] = await gateway.mint(1)
    const questions = [read(caller?.credential ?? '')]

    async function measure(name: Name, round: number): Promise<Observed> {
      context.onProgress(`round ${round} of ${count}: ${TITLES[name]}`)
      const asking = { url: gateway.urlOf(name), questions, connections: CONNECTIONS }
      // Hot from the first measured request on.
      await ask({ ...asking, until: { seconds: HEAT_SECONDS } })
      await untilQuiet(gateway.backends)
      const observed = await observe(gateway, { ...asking, until: { seconds } }, EXPECTED[name])
      const { right, counts } = observed
      const isLeased = name.startsWith('leased')
      if (isLeased && counts.calls > right * MOST_CALLS)
        throw new Error(`${name}: ${right} answers, but ${counts.calls} calls to Redis`)
      return observed
    }
    for (const name of [...NEAR, ...FAR])
      await warmUp(gateway, { url: gateway.urlOf(name), questions })
    const near = await inTurn(NEAR, count, measure)
    const far = await inTurn(FAR, count, measure)
    await gateway.close()

    const rounds: Readonly<Record<Name, readonly Observed[]>> = { ...near, ...far }
    const all = Object.values(rounds).flat()
    const callsOf = (name: Name) =>
      (100 * sumOf(rounds[name], ({ counts }) => counts.calls)) /
      sumOf(rounds[name], ({ right }) => right)
    const cpu = (name: Name, id: string, aim?: Figure['aim']): Figure => ({
      ...{ id: `${id}-cpu`, title: `${TITLES[name]}: CPU to the bare proxy`, unit: 'ratio' },
      value: ratioOf(rounds[name], rounds.passthrough, 'cpuMicros'),
      ...(aim !== undefined && { aim }),
    })
    const ms = (name: Name, id: string, key: 'p50Ms' | 'p99Ms'): Figure => ({
      ...{ id: `${id}-${key.slice(0, 3)}`, title: `${TITLES[name]}: ${key.slice(0, 3)}` },
      ...{ unit: 'ms', value: medianOf(rounds[name], key) },
    })
    return {
      figures: [
        {
          ...{ id: 'leased-calls', title: 'leased: Redis calls for 100 requests', unit: 'count' },
          value: Number(callsOf('leased').toFixed(3)),
          aim: { at: 'most', value: 1 },
        },
        cpu('leased', 'leased', { at: 'most', value: 1.5 }),
        cpu('gateway', 'strict'),
        cpu('unasked', 'unasked'),
        cpu('platform', 'platform'),
        ...(['p50Ms', 'p99Ms'] as const).flatMap((key) => [
          ms('leased', 'leased', key),
          ms('gateway', 'strict', key),
          ms('unasked', 'unasked', key),
          ms('leased-far', 'leased-far', key),
          ms('far', 'strict-far', key),
        ]),
        {
          ...{ id: 'p99-ratio', title: 'leased: p99 to the pipeline without admission' },
          ...{ unit: 'ratio', value: ratioOf(near.leased, near.unasked, 'p99Ms') },
          aim: { at: 'most', value: 1.1 },
        },
      ],
      checks: [
        { what: 'answers that were wrong', seen: noneOf(sumOf(all, ({ right }) => right)) },
        ...(['gateway', 'leased', 'far', 'leased-far'] as const).map((name) => ({
          what: `${TITLES[name]}: calls to Redis for 100 answers`,
          seen: callsOf(name).toFixed(2),
        })),
      ],
      tables: [
        {
          title: `One hot caller, ${CONNECTIONS} connections`,
          headings: ['', 'req/s', 'p50 ms', 'p99 ms', 'CPU us', 'ratio', 'calls for 100'],
          rows: ([...NEAR, ...FAR] as const).map((name) => [
            TITLES[name],
            medianOf(rounds[name], 'perSecond', 0).toLocaleString('en'),
            medianOf(rounds[name], 'p50Ms').toFixed(2),
            medianOf(rounds[name], 'p99Ms').toFixed(2),
            medianOf(rounds[name], 'cpuMicros', 0).toFixed(0),
            ratioOf(rounds[name], rounds.passthrough, 'cpuMicros').toFixed(2),
            callsOf(name).toFixed(2),
          ]),
        },
      ],
      notes: [
        'Latencies are under a closed load, where whoever takes longer also queues longer.',
        ...noiseNotes(all.map(({ otherCores }) => otherCores)),
      ],
    }
  },
}
