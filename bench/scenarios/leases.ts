/** One hot caller: decided in Redis each time, decided from leases, and without admission. */
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { expectAnswer, read } from '../load/questions.ts'
import { refusalsOf } from '../load/refusals.ts'
import { type Contestant, type Expected, measureRounds, type Summary } from '../measure/rounds.ts'
import { noiseNotes, noneOf, ratioOf, rounded, sumOf } from '../measure/statistics.ts'
import { type Figure, figure, ratioFigure, type Scenario } from '../scenario.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startVariants } from '../stack/gateway.ts'

const CONNECTIONS = 20
const HEAT_SECONDS = 0.4
const WARM_UP_SECONDS = 0.5
const EFFORTS = {
  quick: { rounds: 1, seconds: 1 },
  full: { rounds: 7, seconds: 3 },
} as const
/** Delay of each call to Redis of the far variants. */
const FAR_MS = 20
const MOST_CALLS = 0.01
const LEASED_CALLS: Expected = { origin: 1, redis: 0, redisBeside: Number.POSITIVE_INFINITY }

const TITLES = {
  passthrough: 'bare proxy',
  platform: 'proxy with all calls to the platform',
  'platform-redis': 'the same, and a call to Redis',
  unasked: 'pipeline without admission',
  gateway: 'strict',
  leased: 'leased',
  far: `strict, Redis ${FAR_MS} ms away`,
  'leased-far': `leased, Redis ${FAR_MS} ms away`,
} as const
type Name = keyof typeof TITLES
const NAMES = Object.keys(TITLES) as Name[]
const EXPECTED: Readonly<Record<Name, Expected>> = {
  passthrough: { origin: 1, redis: 0, identified: false },
  platform: { origin: 1, redis: 0 },
  'platform-redis': { origin: 1, redis: 1 },
  unasked: { origin: 1, redis: 0 },
  gateway: { origin: 1, redis: 1 },
  leased: LEASED_CALLS,
  far: { origin: 1, redis: 1 },
  'leased-far': LEASED_CALLS,
}

export const leases: Scenario = {
  id: 'leases',
  title: 'On workerd: one hot caller, strict and leased, and refusals',
  measures:
    'One caller at 20 connections under one high limit: admitted in Redis with every request, ' +
    'admitted from leased units (revocations at most a second late), and without admission. Also a ' +
    'bare proxy, and proxies with the same calls to the platform as the leased and the strict pipeline ' +
    `but without decisions: the floor of each. Again with ${FAR_MS} ms added to each reply of Redis. Also ` +
    'requests that the strict pipeline refuses.',
  runtimes: ['workerd'],
  seconds: { quick: 0, full: 200 },

  async run(context) {
    const { effort, detail, shutdown, onProgress } = context
    const gateway = await startVariants(context, NAMES, async ({ redis }) => {
      const { hostname: host, port } = new URL(redis.url)
      const proxy = await startFaultProxy({ target: { host, port: Number(port) } })
      shutdown.defer(proxy.close)
      await proxy.set({ kind: 'latency', ms: FAR_MS })
      return { FAR_REDIS_URL: proxy.url }
    })
    const [token = ''] = await gateway.mint(1)
    const question = read(token)
    const questions = [question]
    // An empty Redis has no scripts: concurrent first requests would each load one in a second call.
    for (const name of NAMES) await expectAnswer(gateway.urlOf(name), question, TITLES[name])
    const contestantOf = (name: Name): Contestant => ({
      id: name,
      title: TITLES[name],
      pid: gateway.pid,
      url: gateway.urlOf(name),
      questions,
      expected: EXPECTED[name],
      async check({ requests, redisCalls }) {
        const lapse = CONNECTIONS / requests
        if (name.startsWith('leased') && redisCalls > MOST_CALLS + lapse)
          throw new Error(`${name}: ${redisCalls} calls to Redis per request, of ${requests}`)
      },
    })
    const tokens = await mintTokens(gateway)
    const refusals = refusalsOf(tokens).map(
      ({ id, title, isLocal, question: refused }): Contestant => ({
        id: `refused-${id}`,
        title: `refused: ${title}`,
        pid: gateway.pid,
        url: gateway.urlOf('gateway'),
        questions: [refused],
        expected: { origin: 0, redis: isLocal ? 0 : 1 },
      }),
    )
    const summaries = await measureRounds([...NAMES.map(contestantOf), ...refusals], {
      ...EFFORTS[effort],
      warmUpSeconds: WARM_UP_SECONDS,
      ...detail,
      heatSeconds: Math.min(HEAT_SECONDS, detail.warmUpSeconds ?? HEAT_SECONDS),
      pace: { connections: CONNECTIONS, mayShed: true },
      backends: gateway.backends,
      onProgress,
    })
    await gateway.close()

    const found = Object.fromEntries(
      summaries.map((each) => [each.id, each]),
    ) as unknown as Readonly<Record<Name, Summary>>
    const base = found.passthrough.rounds
    const roundsOf = (id: string) => summaries.find((each) => each.id === id)?.rounds ?? []
    const callsOf = (name: Name) => 100 * found[name].redisCalls
    const cpu = (name: Name, id: string, more: Pick<Figure, 'aim'> = {}) => {
      const of = [found[name].rounds, base, 'cpuMicros'] as const
      return ratioFigure(`${id}-cpu`, `${TITLES[name]}: CPU to the bare proxy`, of, more)
    }
    /** The platform's floor: the same calls, and no decision. */
    const toPlatform = (name: Name, id: string, floor: Name, atMost: number) => {
      const of = [found[name].rounds, found[floor].rounds, 'cpuMicros'] as const
      const title = `${TITLES[name]}: CPU to a proxy with the same calls to the platform`
      return ratioFigure(`${id}-to-platform`, title, of, { aim: { at: 'most', value: atMost } })
    }
    const ms = (name: Name, id: string, key: 'p50Ms' | 'p99Ms') => {
      const quantile = key.slice(0, 3)
      return figure(`${id}-${quantile}`, `${TITLES[name]}: ${quantile}`, found[name][key], 'ms')
    }
    const calls = rounded(callsOf('leased'), 3)
    const p99s = [found.leased.rounds, found.unasked.rounds, 'p99Ms'] as const
    return {
      figures: [
        figure('leased-calls', 'leased: Redis calls for 100 requests', calls, 'count', {
          aim: { at: 'most', value: 1 },
        }),
        cpu('leased', 'leased', { aim: { at: 'most', value: 1.5 } }),
        cpu('gateway', 'strict', { aim: { at: 'most', value: 2.4 } }),
        cpu('unasked', 'unasked'),
        cpu('platform', 'platform'),
        cpu('platform-redis', 'platform-redis'),
        toPlatform('gateway', 'strict', 'platform-redis', 1.5),
        toPlatform('leased', 'leased', 'platform', 1.15),
        ...(['p50Ms', 'p99Ms'] as const).flatMap((key) => [
          ms('leased', 'leased', key),
          ms('gateway', 'strict', key),
          ms('unasked', 'unasked', key),
          ms('leased-far', 'leased-far', key),
          ms('far', 'strict-far', key),
        ]),
        ...refusals.map(({ id, title, expected }) =>
          ratioFigure(
            `${id}-cpu`,
            `${title}: CPU to the bare proxy`,
            [roundsOf(id), base, 'cpuMicros'],
            expected.redis === 0 ? { aim: { at: 'most', value: 0.75 } } : {},
          ),
        ),
        ratioFigure('p99-ratio', 'leased: p99 to the pipeline without admission', p99s, {
          aim: { at: 'most', value: 1.1 },
        }),
      ],
      checks: [
        {
          what: 'wrong responses',
          seen: noneOf(sumOf(summaries, ({ rounds }) => sumOf(rounds, (one) => one.requests))),
        },
        ...(['gateway', 'leased', 'far', 'leased-far'] as const).map((name) => ({
          what: `${TITLES[name]}: calls to Redis for 100 responses`,
          seen: callsOf(name).toFixed(2),
        })),
      ],
      tables: [
        {
          title: `One hot caller, ${CONNECTIONS} connections`,
          headings: ['', 'req/s', 'p50 ms', 'p99 ms', 'CPU us', 'ratio', 'calls for 100'],
          rows: summaries.map((each) => [
            each.title,
            each.requestsPerSecond.toLocaleString('en'),
            each.p50Ms.toFixed(2),
            each.p99Ms.toFixed(2),
            each.cpuMicros.toFixed(0),
            ratioOf(each.rounds, base, 'cpuMicros').toFixed(2),
            (100 * each.redisCalls).toFixed(2),
          ]),
        },
      ],
      notes: [
        'Latencies are under a closed load: a slower contestant also has longer queues.',
        ...noiseNotes(summaries),
      ],
      details: { summaries },
    }
  },
}
