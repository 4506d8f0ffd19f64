/** The whole pipeline under the traffic of an API: reads and writes, with three kinds of credential. */
import { startRequestsGateway, warmUp } from '../requests/gateway.ts'
import { observe } from '../requests/observe.ts'
import { mixed } from '../requests/questions.ts'
import { inTurn, medianOf, noiseNotes, noneOf, ratioOf, sumOf } from '../requests/rounds.ts'
import type { Figure, Scenario } from '../scenario.ts'

const CONNECTIONS = 50
const EFFORTS = {
  quick: { rounds: 2, seconds: 1 },
  full: { rounds: 5, seconds: 5 },
} as const
const NAMES = ['passthrough', 'gateway'] as const
const EXPECTED = {
  passthrough: { origin: 1, redis: 0, identified: false },
  gateway: { origin: 1, redis: 1 },
} as const
/** Of each ten callers. */
const CALLERS = { jwt: 6, opaque: 2, apiKey: 2 } as const
const TENS = 25

export const fullStack: Scenario = {
  id: 'full-stack',
  title: 'Full stack under mixed traffic',
  measures:
    'The whole pipeline at 50 connections: 80 % reads and 20 % writes with validated bodies, by ' +
    'callers with JWTs (60 %), opaque tokens and API keys (20 % each); a bare proxy in turn.',
  answers: ['subzero-full-stack', 'spacetime-full-stack'],
  asserts: [
    'Every answer is the origin’s, to the byte.',
    'Every answer has reached the origin, once, which was told who asks, with an assertion.',
    'Every answer has cost one call to Redis, whatever the credential.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 11, full: 70 },

  async run(context) {
    const { rounds: count, seconds } = EFFORTS[context.effort]
    const gateway = await startRequestsGateway(context, {
      isolates: { passthrough: 'passthrough', gateway: 'gateway' },
    })
    const holders = [
      await gateway.mint(CALLERS.jwt * TENS),
      await gateway.mint(CALLERS.opaque * TENS, { format: 'opaque' }),
      await gateway.mintApiKeys(CALLERS.apiKey * TENS),
    ].flat()
    const questions = mixed(holders.map(({ credential }) => credential))
    for (const name of NAMES) await warmUp(gateway, { url: gateway.urlOf(name), questions })
    const rounds = await inTurn(NAMES, count, (name, round) => {
      context.onProgress(`round ${round} of ${count}: ${name}`)
      const asking = { url: gateway.urlOf(name), questions, connections: CONNECTIONS }
      return observe(gateway, { ...asking, until: { seconds } }, EXPECTED[name])
    })
    await gateway.close()
    const { gateway: full, passthrough } = rounds
    const all = [...full, ...passthrough]
    const figure = (id: string, title: string, unit: Figure['unit'], value: number): Figure => ({
      ...{ id, title, unit, value },
    })
    const subzero = { beside: ['subzero-full-stack'] } as const
    const spacetime = { beside: ['spacetime-full-stack'] } as const
    return {
      figures: [
        {
          ...figure('throughput', 'throughput', '1/s', medianOf(full, 'perSecond', 0)),
          ...subzero,
        },
        { ...figure('p50', 'p50', 'ms', medianOf(full, 'p50Ms')), ...subzero },
        { ...figure('p95', 'p95', 'ms', medianOf(full, 'p95Ms')), ...subzero },
        figure('p99', 'p99', 'ms', medianOf(full, 'p99Ms')),
        figure('cpu', 'CPU of a request', 'us', medianOf(full, 'cpuMicros', 0)),
        figure('cpu-ratio', 'CPU to passthrough', 'ratio', ratioOf(full, passthrough, 'cpuMicros')),
        figure('passthrough-p50', 'p50 of passthrough', 'ms', medianOf(passthrough, 'p50Ms')),
        {
          ...figure(
            'p50-ratio',
            'p50 to passthrough',
            'ratio',
            ratioOf(full, passthrough, 'p50Ms'),
          ),
          ...spacetime,
        },
      ],
      checks: [
        { what: 'answers that were wrong', seen: noneOf(sumOf(all, ({ right }) => right)) },
        {
          what: 'calls to Redis for an answer of the pipeline',
          seen: (
            sumOf(full, ({ counts }) => counts.calls) / sumOf(full, ({ right }) => right)
          ).toFixed(3),
        },
      ],
      tables: [
        {
          title: 'Mixed traffic, 50 connections',
          headings: ['', 'req/s', 'p50 ms', 'p95 ms', 'p99 ms', 'CPU us'],
          rows: NAMES.map((name) => [
            name,
            medianOf(rounds[name], 'perSecond', 0).toLocaleString('en'),
            ...(['p50Ms', 'p95Ms', 'p99Ms'] as const).map((key) =>
              medianOf(rounds[name], key).toFixed(2),
            ),
            medianOf(rounds[name], 'cpuMicros', 0).toFixed(0),
          ]),
        },
      ],
      notes: [
        'p50 to passthrough is under a closed load, where whoever takes longer also queues longer; ' +
          'what each stage adds at a fixed rate is measured by the scenario `layers`.',
        'Calls to Redis are slightly above one where requests were broken off at the end of a round.',
        ...noiseNotes(all.map(({ otherCores }) => otherCores)),
      ],
    }
  },
}
