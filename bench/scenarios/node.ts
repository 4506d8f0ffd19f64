/** The gateway on Node with a durable audit trail and without, beside opponents. */
import { hasPostgres, startPostgres } from '../../test/harness/postgres.ts'
import { sendClosed } from '../load/closed.ts'
import { orders } from '../load/questions.ts'
import { type Contestant, measureRounds } from '../measure/rounds.ts'
import { noiseNotes, noneOf, rounded, sumOf } from '../measure/statistics.ts'
import {
  bare,
  byHandDurable,
  byHandLog,
  type NodeGateway,
  oursDurable,
  oursLog,
  oursWithPostgres,
  type Started,
  startOnNode,
} from '../node/contestants.ts'
import { type Costs, openRedis, storedBytesIn, withCosts } from '../node/costs.ts'
import { figuresOf, type Measured, tableOf } from '../node/figures.ts'
import { makeProbes, tryOut } from '../node/probes.ts'
import type { Effort } from '../runtimes.ts'
import type { Scenario } from '../scenario.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

const CONTESTANTS: readonly NodeGateway[] = [bare, byHandLog, byHandDurable, oursLog, oursDurable]
const CONNECTIONS = 32

const EFFORTS = {
  quick: { rounds: 1, seconds: 0.6, warmUp: { seconds: 0.5 } },
  // V8 compiles the functions of Portcullis until about 50,000 requests, most after 10,000.
  full: { rounds: 7, seconds: 2, warmUp: { requests: 60_000 } },
} as const satisfies Record<Effort, object>

export const node: Scenario = {
  id: 'node',
  title: 'The gateway on Node, with a durable audit trail and with log lines',
  measures:
    'The shipped policy on Node, a process over RESP: with audit events as lines of a log that is ' +
    'discarded, in SQLite, and in PostgreSQL. Beside it a proxy that decides nothing, and a strong ' +
    'stack that is written by hand, with log lines, and with a Redis stream and batched inserts into ' +
    'SQLite of the same durability. Interleaved rounds of a closed load. CPU is read when the stream ' +
    'of events is drained.',
  runtimes: ['node'],
  seconds: { quick: 25, full: 330 },

  async run(context) {
    const { effort, detail, onProgress, shutdown } = context
    const { rounds, seconds } = { ...EFFORTS[effort], ...detail }
    const { connections = CONNECTIONS, warmUpSeconds } = detail
    const ground = await startGround(context)
    const { backends } = ground
    const tokens = await mintTokens(ground)
    const postgres = hasPostgres ? await startPostgres() : undefined
    shutdown.defer(async () => postgres?.close())
    const database = await postgres?.database('portcullis')
    const started: Started[] = []
    for (const gateway of database ? [...CONTESTANTS, oursWithPostgres(database)] : CONTESTANTS)
      started.push(await startOnNode(context, gateway, { ground, tokens }))
    const probes = await makeProbes(tokens, backends)
    let probed = 0
    // Its keys have another prefix, and the revocation of the probe has not.
    for (const { gateway, url } of started)
      if (gateway.id !== 'postgres') probed += await tryOut(gateway, url, probes, backends)

    const redis = await openRedis(backends.redis.directUrl)
    shutdown.defer(async () => redis.close())
    const contestants = started.map((one) => contestantOf(one, tokens.writers, connections))
    const common = { backends, onProgress, pace: { connections, mayShed: true } }
    onProgress('warming up')
    const storedBefore = started.map(({ directory }) => storedBytesIn(directory))
    const until = warmUpSeconds ? { seconds: warmUpSeconds } : EFFORTS[effort].warmUp
    const warm: number[] = []
    for (const { url, questions } of contestants) {
      warm.push((await sendClosed({ url, questions, ...common.pace, until })).right)
      await redis.untilDrained()
    }
    const costs = started.map((): Costs[] => [])
    const watched = contestants.map((one, index) => {
      const scripts = started[index]?.gateway.isDurable ? undefined : one.id === bare.id ? 0 : 1
      return withCosts(one, { redis, postgresPid: postgres?.pid() }, costs[index] ?? [], scripts)
    })
    const summaries = await measureRounds(watched, { ...common, rounds, seconds })

    const measured: Measured[] = []
    for (const [index, { gateway, directory, close }] of started.entries()) {
      // SQLite writes its log into the file of the database when the process ends.
      await close()
      const [summary, spent] = [summaries[index], costs[index] ?? []]
      if (summary === undefined) throw new Error(`${gateway.title} was not measured`)
      const events = sumOf(summary.rounds, ({ requests }) => requests) + (warm[index] ?? 0)
      const grown = storedBytesIn(directory) - (storedBefore[index] ?? 0)
      const storedBytes = rounded(Math.max(0, grown) / events, 0)
      measured.push({ gateway, summary, costs: spent, storedBytes })
    }
    return {
      figures: figuresOf(measured),
      checks: [
        { what: 'wrong responses to probes', seen: noneOf(probed) },
        {
          what: 'wrong responses',
          seen: noneOf(sumOf(summaries, (each) => sumOf(each.rounds, (one) => one.requests))),
        },
        { what: 'events left in the stream after a round', seen: '0' },
      ],
      tables: [
        tableOf(`Closed load, ${connections} connections, medians of ${rounds} rounds`, measured),
      ],
      notes: [
        'CPU is that of all threads of the process, the audit thread included, and of what it does ' +
          'until the last event of a round is stored. Redis and PostgreSQL are processes of their own.',
        'The opponent by hand has no permissions from roles, no validation, no bans, no deadlines, no ' +
          'metrics and no hash chain.',
        ...(postgres === undefined
          ? ['PostgreSQL is not on this machine: its row is missing.']
          : []),
        ...noiseNotes(summaries.flatMap((each) => each.rounds)),
      ],
      details: {
        measured: measured.map(({ gateway: { id, title }, ...rest }) => ({ id, title, ...rest })),
      },
    }
  },
}

function contestantOf(
  { gateway, pid, url }: Started,
  tokens: readonly string[],
  connections: number,
): Contestant {
  const { id, title, file } = gateway
  const isOurs = file === 'gateway.ts'
  const identified = file !== 'bare.ts'
  return {
    id,
    title,
    pid,
    url,
    questions: orders('read', tokens),
    // Calls over RESP do not pass the REST server, which counts calls.
    expected: { origin: 1, redis: 0, identified, asserted: isOurs, late: connections },
  }
}
