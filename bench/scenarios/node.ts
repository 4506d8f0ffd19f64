/** The gateway on Node, a bare proxy, and opponents that are written by hand. */

import { orders } from '../load/questions.ts'
import { type Contestant, measureRounds } from '../measure/rounds.ts'
import { noiseNotes, noneOf, sumOf } from '../measure/statistics.ts'
import {
  CONNECTIONS,
  figuresOf,
  type Measurements,
  redisTableOf,
  tableOf,
} from '../node/figures.ts'
import { checkLimit, LOW_LIMIT } from '../node/limit.ts'
import {
  BUNDLED,
  bareOnNode,
  byHandOnNode,
  byHandOnWorkers,
  leasedOnNode,
  oursOnNode,
  oursOnWorkers,
  readmeOnNode,
  readmeOnWorkers,
  relatedOnNode,
  streamedOnNode,
  twoProcesses,
} from '../node/peers.ts'
import { type RedisUse, withRedisUse } from '../node/redis-use.ts'
import { featureTable } from '../peers/figures.ts'
import type { Peer } from '../peers/peer.ts'
import { makeProbes, tryOut } from '../peers/probes.ts'
import { type Entrant, startAll } from '../peers/start.ts'
import { connectDirectly, fillSizes } from '../relations/direct-redis.ts'
import { mintCallers, questionsOf, WAYS } from '../relations/measure-gateway.ts'
import type { Effort } from '../runtimes.ts'
import type { Scenario } from '../scenario.ts'
import { bundleOnce } from '../stack/bundle.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

const CLOSED = [
  bareOnNode,
  oursOnNode,
  leasedOnNode,
  streamedOnNode,
  byHandOnNode,
  readmeOnNode,
  oursOnWorkers,
  byHandOnWorkers,
  readmeOnWorkers,
] as const
/** Those whose limit can be low. The limits of our Worker are tested with it. */
const LIMITED = [oursOnNode, byHandOnNode, readmeOnNode, byHandOnWorkers, readmeOnWorkers] as const
/** Scripts of one request. The others run fewer, or more for other purposes. */
const SCRIPTS: ReadonlyMap<Peer, number> = new Map<Peer, number>([
  [bareOnNode, 0],
  ...[oursOnNode, byHandOnNode, oursOnWorkers, byHandOnWorkers].map((one) => [one, 1] as const),
])
const PACED = [oursOnNode, byHandOnNode, bareOnNode] as const

const EFFORTS = {
  quick: { rounds: 1, seconds: 0.6, warmUpSeconds: 0.5, pacedSeconds: 0.6, tuples: 1_000 },
  full: { rounds: 7, seconds: 2.5, warmUpSeconds: 3, pacedSeconds: 5, tuples: 100_000 },
} as const satisfies Record<Effort, object>
/** The rate of the first seed's table. */
const RATE_PER_SECOND = 1_000
/** Decisions about relations in a second. */
const CHECKS_PER_SECOND = 420

export const node: Scenario = {
  id: 'node',
  title: 'The gateway on Node',
  measures:
    'The shipped policy on Node over RESP, strict and leased, beside a proxy that decides nothing, ' +
    'opponents that are written by hand, and our own Worker. Interleaved rounds of a closed load ' +
    `at ${CONNECTIONS} connections, and of ${RATE_PER_SECOND.toLocaleString('en')} requests a second.`,
  answers: ['spacetime-offered-1000', 'subzero-permissions'],
  asserts: [
    'Each gateway answers good, forged, expired, revoked and missing tokens, a caller without the ' +
      'role, a bad query and an ambiguous path as the table says. No refused request reaches the ' +
      'origin.',
    'Each gateway with a low limit refuses above it with 429.',
    'Redis ran one script for each response, where the gateway makes one call.',
    'Every response is 200 with the body of the origin, which received the caller’s identity.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 50, full: 430 },

  async run(context) {
    const { effort, directory, onProgress, shutdown } = context
    const { rounds, seconds, warmUpSeconds, pacedSeconds, tuples } = EFFORTS[effort]
    const ground = await startGround(context)
    const { backends } = ground
    const tokens = await mintTokens(ground)
    onProgress('bundling')
    await Promise.all(BUNDLED.map((config) => bundleOnce(config, directory)))
    const entry = { ...context, backends, tokens }
    const low = await startAll({ ...entry, peers: LIMITED, limit: LOW_LIMIT })
    for (const [index, { peer, running }] of low.entrants.entries()) {
      // Each has its own caller, because some share their counters.
      await checkLimit(peer, running, tokens.writers[index + 1] ?? '')
      await running.close()
    }
    const { entrants } = await startAll({
      ...entry,
      peers: [...CLOSED, twoProcesses, relatedOnNode],
    })
    const probes = await makeProbes(tokens, backends)
    let probed = 0
    for (const { peer, running } of entrants)
      probed += await tryOut(peer, running, probes, backends)

    const contestantOf = ({ id }: { readonly id: string }): Contestant => {
      const entrant = entrants.find(({ peer }) => peer.id === id)
      if (entrant === undefined) throw new Error(`${id} was not started`)
      // Units are leased for a caller that sends many requests.
      const isLeased = id === leasedOnNode.id
      return contestant(entrant, isLeased ? tokens.writers.slice(0, 1) : tokens.writers)
    }
    const redis = await connectDirectly(backends.redis.directUrl)
    shutdown.defer(async () => redis.close())
    const redisUse = new Map(CLOSED.map(({ id }): [string, RedisUse[]] => [id, []]))
    const common = { rounds, backends, onProgress }
    const watched = CLOSED.map((peer) =>
      withRedisUse(contestantOf(peer), redis, redisUse.get(peer.id) ?? [], SCRIPTS.get(peer)),
    )
    const closed = await measureRounds(watched, {
      ...common,
      seconds,
      warmUpSeconds,
      pace: { connections: CONNECTIONS, mayShed: true },
    })
    const processes = await measureRounds([oursOnNode, twoProcesses].map(contestantOf), {
      ...common,
      seconds,
      warmUpSeconds,
      pace: { connections: CONNECTIONS, mayShed: true },
    })
    const paced = await measureRounds(PACED.map(contestantOf), {
      ...common,
      seconds: pacedSeconds,
      pace: { ratePerSecond: RATE_PER_SECOND },
    })
    await fillSizes(redis, [tuples], onProgress)
    const callers = await mintCallers(ground, [tuples])
    const questions = (round: number) => questionsOf(callers, WAYS.cold, { size: tuples, round })
    const related = await measureRounds(
      [
        {
          ...contestantOf(relatedOnNode),
          questions: questions(0),
          prepare: async (round) => questions(round),
        },
      ],
      {
        ...common,
        seconds: pacedSeconds,
        warmUpSeconds,
        pace: { ratePerSecond: CHECKS_PER_SECOND },
      },
    )
    for (const { running } of entrants) await running.close()

    const measured: Measurements = { closed, redisUse, processes, paced, related }
    const all = [...closed, ...processes, ...paced, ...related]
    return {
      figures: figuresOf(measured),
      checks: [
        { what: 'wrong responses to probes', seen: noneOf(probed) },
        { what: 'gateways that exceeded a limit', seen: noneOf(low.entrants.length) },
        {
          what: 'wrong responses',
          seen: noneOf(sumOf(all, (each) => sumOf(each.rounds, ({ requests }) => requests))),
        },
      ],
      tables: [
        tableOf(`Closed load, ${CONNECTIONS} connections`, closed),
        redisTableOf(measured),
        tableOf('One process and two', processes),
        tableOf(`${RATE_PER_SECOND} requests a second`, paced),
        tableOf(`${CHECKS_PER_SECOND} decisions about relations a second`, related),
        featureTable(entrants.map(({ peer }) => peer)),
      ],
      notes: [
        'The opponents that are written by hand do less: see the table. The audit events of our gateway on ' +
          'Node are lines of its log here, as without AUDIT_DATABASE and AUDIT_STREAM, except in the row of ' +
          'the audit stream.',
        'Redis, origin, load and gateway share the cores. So two processes cannot double the throughput ' +
          'of one: the cores column of the table shows what was left.',
        ...noiseNotes(all.flatMap((each) => each.rounds)),
      ],
      details: { ...measured, redisUse: Object.fromEntries(redisUse) },
    }
  },
}

function contestant({ peer, running }: Entrant, tokens: readonly string[]): Contestant {
  const { id, title, identifies, redisCalls } = peer
  const isOurs = [
    ...[oursOnNode, oursOnWorkers, leasedOnNode],
    ...[streamedOnNode, twoProcesses, relatedOnNode],
  ].some((one) => one.id === id)
  return {
    id,
    title,
    pid: running.pid,
    url: running.url,
    questions: orders('read', tokens),
    expected: {
      origin: 1,
      redis: redisCalls,
      identified: identifies,
      asserted: isOurs,
      late: CONNECTIONS,
    },
  }
}
