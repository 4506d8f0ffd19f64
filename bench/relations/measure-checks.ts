/** Measures checks alone, with the statistics of Redis and no other load. */
import type { RelationDecision, RelationQuery } from '../../src/access/relations/decision-point.ts'
import type { RelationCheck } from '../../src/access/relations/redis/check.ts'
import { inTurn } from '../measure/rounds.ts'
import { rounded } from '../measure/statistics.ts'
import type { DirectRedis } from './direct-redis.ts'
import { callerName, type Pair, pairsOf, RELATION, type Size, tenantOf } from './graph.ts'
import { SLOW_OBJECT, SLOW_RELATION, type SlowGraph } from './slow-graphs.ts'

const BATCH = 500
/** Threshold of the slow log. Every check of a slow graph is above it. */
const KEPT_MICROS = 200

const queryOf = (size: number, { caller, order }: Pair): RelationQuery => ({
  tenant: tenantOf(size),
  object: `order:${order}`,
  relation: RELATION,
  subject: `user:${callerName(caller)}`,
  contextualTuples: [],
})

/** Measures checks. Throws an `Error` of one line if a decision differs from the construction. */
export async function measureChecks(
  redis: DirectRedis,
  check: RelationCheck,
  of: {
    readonly size: Size
    readonly answer: 'allowed' | 'denied'
    readonly count: number
    readonly from: number
  },
) {
  const { size, answer, count, from } = of
  const queries = pairsOf(size, answer, count, from).map((pair) => queryOf(size, pair))
  const before = await redis.usage()
  for (const { outcome } of await decide(redis, check, queries)) {
    if (outcome !== answer) throw new Error(`${tenantOf(size)}: ${outcome}, not ${answer}`)
  }
  const after = await redis.usage()
  const checks = after.calls - before.calls
  if (checks !== count) throw new Error(`${count} checks, but ${checks} scripts`)
  return {
    checks,
    /** Microseconds of one check in its script, including all its commands. */
    micros: rounded((after.micros - before.micros) / checks, 2),
    cpuMicros: rounded((after.cpuMicros - before.cpuMicros) / checks, 2),
    // One of the commands belongs to the first reading.
    commands: Math.round((after.commands - before.commands - 1) / checks),
  }
}

/** Rounds by decision and size: `allowed-1000`. */
export type ChecksById = Readonly<
  Record<string, readonly Awaited<ReturnType<typeof measureChecks>>[]>
>

/** Measures all sizes, allowed and denied, in turn. Also returns the longest check. */
export async function measureAllChecks(
  redis: DirectRedis,
  check: RelationCheck,
  {
    sizes,
    checkRounds,
    checksEach: count,
  }: {
    readonly sizes: readonly Size[]
    readonly checkRounds: number
    readonly checksEach: number
  },
): Promise<{ readonly checks: ChecksById; readonly slowestMicros: number }> {
  const wanted = (['allowed', 'denied'] as const).flatMap((answer) =>
    sizes.map((size) => ({ answer, size })),
  )
  await redis.watchSlow(KEPT_MICROS)
  const checks = await inTurn(wanted, checkRounds, (of, round) =>
    measureChecks(redis, check, { ...of, count, from: round * count }),
  )
  return {
    checks: Object.fromEntries(
      [...checks].map(([{ answer, size }, rounds]) => [`${answer}-${size}`, rounds]),
    ),
    slowestMicros: (await redis.slowestMicros()) ?? KEPT_MICROS,
  }
}

/** Loads the script into Redis' script cache; this load does not count as a script run. */
export async function teachScript(redis: DirectRedis, check: RelationCheck): Promise<void> {
  await decide(redis, check, [queryOf(0, { caller: 0, order: '0' })])
}

/** Returns the decisions in the order of the queries. */
async function decide(
  redis: DirectRedis,
  check: RelationCheck,
  queries: readonly RelationQuery[],
): Promise<readonly RelationDecision[]> {
  const decisions: RelationDecision[] = []
  for (let at = 0; at < queries.length; at += BATCH) {
    const commands = await Promise.all(
      queries.slice(at, at + BATCH).map((query) => check.command(redis.keys, query)),
    )
    const replies = await redis.send(commands)
    for (const [index, command] of commands.entries()) {
      const { decision } = await check.answerOf(redis, replies[index], command)
      decisions.push(decision)
    }
  }
  return decisions
}

export type SlowRound = Awaited<ReturnType<typeof measureSlow>>

/** Measures a slow graph. Throws for a wrong decision; `unknown` is not wrong. */
export async function measureSlow(
  redis: DirectRedis,
  check: RelationCheck,
  { id, questions }: SlowGraph,
  times: number,
) {
  const queries = questions.map(({ subject, isViewer }) => ({
    truth: isViewer ? 'allowed' : 'denied',
    query: {
      tenant: id,
      object: SLOW_OBJECT,
      relation: SLOW_RELATION,
      subject,
      contextualTuples: [],
    } satisfies RelationQuery,
  }))
  // A check with a trace does additional work, so it is used only to count.
  let mostWork = 0
  for (const { query } of queries) {
    const command = await check.command(redis.keys, query, { trace: true })
    const [reply] = await redis.send([command])
    mostWork = Math.max(mostWork, (await check.explanationOf(redis, reply, command)).trace.work)
  }
  await redis.watchSlow(0)
  const unknown = new Set<string>()
  let [checks, answered, micros, cpuMicros] = [0, 0, 0, 0]
  for (const { query, truth } of queries) {
    const before = await redis.usage()
    for (let time = 0; time < times; time++) {
      const [decision] = await decide(redis, check, [query])
      if (decision?.outcome === 'unknown') unknown.add(decision.why)
      else if (decision?.outcome === truth) answered++
      else throw new Error(`${id}: ${query.subject} is ${decision?.outcome}, not ${truth}`)
    }
    const after = await redis.usage()
    checks += times
    micros = Math.max(micros, (after.micros - before.micros) / times)
    cpuMicros = Math.max(cpuMicros, (after.cpuMicros - before.cpuMicros) / times)
  }
  return {
    checks,
    answered,
    unknown: [...unknown],
    mostWork,
    micros: rounded(micros, 1),
    cpuMicros: rounded(cpuMicros, 1),
    slowestMicros: (await redis.slowestMicros()) ?? 0,
  }
}
