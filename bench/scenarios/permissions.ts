/** What a permission check costs: by itself in an isolate, and as a stage of the pipeline. */
import { offerInTurn } from '../open-load.ts'
import { orderLoad } from '../order-requests.ts'
import { startRequestsGateway, warmUp } from '../requests/gateway.ts'
import { measureChecks } from '../requests/measure-checks.ts'
import { observe } from '../requests/observe.ts'
import { PERMISSION_CHECKS } from '../requests/permission-checks.ts'
import { read } from '../requests/questions.ts'
import { inTurn, medianOf, noiseNotes, noneOf, sumOf } from '../requests/rounds.ts'
import type { Figure, Scenario } from '../scenario.ts'
import { median, rounded } from '../statistics.ts'

const CONNECTIONS = 20
const CALLERS = 50
const EFFORTS = {
  quick: {
    rounds: 2,
    seconds: 0.4,
    batchMs: 50,
    batches: 4,
    offer: { ratePerSecond: 200, seconds: 1.5 },
  },
  full: {
    rounds: 9,
    seconds: 2,
    batchMs: 200,
    batches: 10,
    offer: { ratePerSecond: 400, seconds: 20 },
  },
} as const
const STAGES = ['admit', 'authorize'] as const
/** The stages before the whole pipeline tell the origin who asks without an assertion. */
const EXPECTED = { origin: 1, redis: 1, asserted: false } as const

export const permissions: Scenario = {
  id: 'permissions',
  title: 'Permissions',
  measures:
    'Permission checks by roles, wildcards and scopes, repeated inside an isolate; and what the ' +
    '`authorize` stage adds to the pipeline up to `admit`: CPU in rounds, p50 at a fixed rate.',
  answers: ['spacetime-rbac'],
  asserts: [
    'Every batch of checks says yes as often as it has to.',
    'A caller without the permission is refused by `authorize`, and passes `admit`.',
    'Every answer of both stages is the origin’s, for one call to Redis.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 11, full: 85 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const gateway = await startRequestsGateway(context, {
      isolates: { admit: 'admit', authorize: 'authorize', checks: 'checks' },
    })
    context.onProgress('checks in an isolate')
    const checks = await measureChecks({ ...gateway, ...effort, url: gateway.urlOf('checks') })

    const holders = await gateway.mint(CALLERS)
    const questions = holders.map(({ credential }) => read(credential))
    const [powerless] = await gateway.mint(1, { roles: [] })
    for (const stage of STAGES) {
      const url = gateway.urlOf(stage)
      await refuseOtherStatus(url, powerless?.credential ?? '', stage === 'admit' ? 200 : 403)
      await warmUp(gateway, { url, questions })
    }
    const rounds = await inTurn(STAGES, effort.rounds, (stage, round) => {
      context.onProgress(`round ${round} of ${effort.rounds}: ${stage}`)
      const asking = { url: gateway.urlOf(stage), questions, connections: CONNECTIONS }
      return observe(gateway, { ...asking, until: { seconds: effort.seconds } }, EXPECTED)
    })
    context.onProgress('both stages in turn, request by request')
    const tokens = holders.map(({ credential }) => credential)
    const paced = await offerInTurn(
      STAGES.map((stage) => orderLoad(gateway.urlOf(stage), 'read', tokens)),
      { ...effort.offer, mayShed: true },
    )
    await gateway.close()
    const [admitMs = 0, authorizeMs = 0] = paced.each.map((each) => each.percentile(0.5))
    const all = Object.values(rounds).flat()
    const differences = rounds.authorize.map(
      (round, at) => round.cpuMicros - (rounds.admit[at]?.cpuMicros ?? 0),
    )
    return {
      figures: [
        ...checks.map(
          ({ id, title, nanos }): Figure => ({
            ...{ id: `check-${id}`, title, value: rounded(nanos / 1000, 4), unit: 'us' },
          }),
        ),
        {
          ...{ id: 'stage-cpu', title: 'CPU that `authorize` adds', unit: 'us' },
          value: rounded(median(differences), 1),
        },
        {
          ...{ id: 'stage-p50', title: 'p50 that `authorize` adds', unit: 'ms' },
          ...{ value: rounded(authorizeMs - admitMs, 2), beside: ['spacetime-rbac'] },
        },
      ],
      checks: [
        {
          what: 'batches with another number of yes',
          seen: noneOf(effort.batches * PERMISSION_CHECKS.length),
        },
        {
          what: 'answers that were wrong',
          seen: noneOf(sumOf(all, ({ right }) => right) + paced.right),
        },
      ],
      plots: [
        {
          ...{ id: 'checks', title: 'A permission check', kind: 'bar' },
          ...{ x: { title: 'granted by' }, y: { title: 'ns' } },
          categories: checks.map(({ title }) => title),
          series: [{ name: 'one check', points: checks.map(({ nanos }) => nanos) }],
        },
      ],
      tables: [
        {
          title: 'Permission checks',
          headings: ['', 'ns'],
          rows: checks.map(({ title, nanos }) => [title, nanos.toFixed(1)]),
        },
      ],
      notes: [
        'Roles, wildcards and scopes are what is measured: `a wildcard four levels above it` is the ' +
          'deepest thing that a role can say. Relations between callers and objects are measured by ' +
          '`relations`.',
        'p50 is from requests at a fixed rate, the next one always to the other stage; where it says less ' +
          'than nothing, what the stage adds is below what this machine can tell.',
        'The CPU that the stage adds is a difference of two large numbers: single rounds say ' +
          `${Math.min(...differences).toFixed(0)} to ${Math.max(...differences).toFixed(0)} us, and ` +
          'a median below that spread is not told apart from nothing.',
        ...noiseNotes(all.map(({ otherCores }) => otherCores)),
      ],
      details: { medianCpuMicros: { admit: medianOf(rounds.admit, 'cpuMicros', 1) } },
    }
  },
}

async function refuseOtherStatus(url: string, credential: string, status: number): Promise<void> {
  const { path, headers } = read(credential)
  const response = await fetch(url + path, { headers })
  await response.body?.cancel()
  if (response.status !== status)
    throw new Error(`a caller without a role is answered with ${response.status}, not ${status}`)
}
