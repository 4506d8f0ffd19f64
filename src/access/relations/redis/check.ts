import { Unavailable } from '../../../errors.ts'
import type { RedisCommand, RedisConnection, RedisReply } from '../../../redis/connection.ts'
import type { RedisKeys } from '../../../redis/keys.ts'
import { createScript, scriptName, scriptResult } from '../../../redis/script.ts'
import { MAX_CONTEXTUAL_TUPLES } from '../../../validators/relations.ts'
import type { RelationAnswer, RelationDecision, RelationQuery } from '../decision-point.ts'
import type { RelationModel } from '../model.ts'
import {
  type ExplainedAnswer,
  type ExplainingDecisionPoint,
  MAX_TRACE_STEPS,
  type RelationStep,
  type RelationTrace,
  TRACE_NOTES,
  TRACED_RULES,
} from '../trace.ts'
import { isTuple } from '../tuple.ts'
import { deriveRelationKeys, laneOfTenant, type RelationKeys, versionIn } from './keys.ts'
import { relationScript } from './script.ts'

/** Limits of one check. Beyond a limit the check returns `unknown`, not `denied`. */
export interface RelationLimits {
  /** Maximum number of tuples in a chain (`max_depth_exceeded`). */
  readonly maxDepth: number
  /** Maximum number of calls inside Redis plus set members that are read (`max_work_exceeded`). */
  readonly maxWork: number
}

/** See docs/decisions/0042. */
export const RELATION_LIMITS: RelationLimits = { maxDepth: 25, maxWork: 1_000 }

export interface RelationCheck {
  /**
   * Returns an `EVALSHA` command for the server with these names of keys. Returns a promise on the first call, and for a tenant with a long
   * name. Throws `TypeError` for arguments that do not have the syntax of a tuple, and for too many
   * contextual tuples. Denies relations that the model does not have.
   */
  command(
    names: RedisKeys,
    query: RelationQuery,
    options?: { readonly trace?: boolean },
  ): RedisCommand | Promise<RedisCommand>
  /**
   * Returns the answer for the reply to `command`. Sends the full script once if Redis does not
   * have it in its script cache. Throws `Unavailable` for an incomplete reply, and `Unavailable`
   * (`stale`) if the version in Redis is lower than the required one.
   */
  answerOf(
    redis: RedisConnection,
    reply: RedisReply | undefined,
    command: RedisCommand,
  ): Promise<RelationAnswer>
  /** As `answerOf`, for a command with `trace`. */
  explanationOf(
    redis: RedisConnection,
    reply: RedisReply | undefined,
    command: RedisCommand,
  ): Promise<ExplainedAnswer>
}

/** The index of the required version in a command: after its name, the script's and one key, ARGV[10]. */
const AT_LEAST = 13

/**
 * Creates the check for a model of `compileModel`: one script that contains the model. Throws
 * `TypeError` for a model with an invalid name. Does NOT check the caller: the code that builds the
 * query must set its tenant.
 */
export function createRelationCheck(
  model: RelationModel,
  limits: RelationLimits = RELATION_LIMITS,
): RelationCheck {
  const text = relationScript(model)
  const script = createScript(text, { keys: 'derived' })
  /** Not a promise: a request must not await a promise of another request. */
  let name: string | undefined

  async function named(
    names: RedisKeys,
    query: RelationQuery,
    maxSteps: number,
  ): Promise<RedisCommand> {
    const keys = await deriveRelationKeys(names, query.tenant)
    name ??= await scriptName(text)
    return createCommand(name, keys, query, limits, maxSteps)
  }

  return {
    command(names, query, { trace = false } = {}) {
      const keys = deriveRelationKeys(names, query.tenant)
      const maxSteps = trace ? MAX_TRACE_STEPS : 0
      if (name === undefined || keys instanceof Promise) return named(names, query, maxSteps)
      return createCommand(name, keys, query, limits, maxSteps)
    },
    async answerOf(redis, reply, command) {
      return answerIn(await scriptResult(redis, { script, command, reply }), command)
    },
    async explanationOf(redis, reply, command) {
      const result = await scriptResult(redis, { script, command, reply })
      return { ...answerIn(result, command), trace: traceOf(result) }
    },
  }
}

function createCommand(
  name: string,
  { tuples, usersets, subjects, version }: RelationKeys,
  { object, relation, subject, contextualTuples, atLeast = 0 }: RelationQuery,
  { maxDepth, maxWork }: RelationLimits,
  maxSteps: number,
): RedisCommand {
  if (!isTuple({ object, relation, subject }) || !contextualTuples.every(isTuple))
    throw new TypeError('relations: invalid object, relation or subject in the query')
  if (contextualTuples.length > MAX_CONTEXTUAL_TUPLES)
    throw new TypeError(`relations: more than ${MAX_CONTEXTUAL_TUPLES} contextual tuples`)
  return [
    'EVALSHA',
    name,
    // One key names the slot on a cluster.
    1,
    version,
    tuples,
    usersets,
    version,
    object,
    relation,
    subject,
    maxDepth,
    maxWork,
    maxSteps,
    atLeast,
    subjects,
    ...contextualTuples.flatMap((tuple) => [`${tuple.object}#${tuple.relation}`, tuple.subject]),
  ]
}

function answerIn(result: unknown, command: RedisCommand): RelationAnswer {
  if (!Array.isArray(result) || result.length !== 5) throw malformed()
  const [outcome, versionText] = result
  const decision = readDecision(outcome)
  const version = versionText === '' ? 0 : versionIn(versionText)
  const atLeast = Number(command[AT_LEAST])
  if (!(version >= atLeast)) throw new Unavailable('redis', 'stale')
  return { decision, version }
}

/**
 * Creates a policy decision point that makes its own calls. Throws `Unavailable` (`redis`), and
 * `TypeError` for queries as `command` does.
 */
export function createRedisDecisionPoint(
  redis: RedisConnection,
  check: RelationCheck,
): ExplainingDecisionPoint {
  return {
    async check(query) {
      const lane = laneOfTenant(redis, query.tenant)
      const command = await check.command(lane.keys, query)
      const [reply] = await lane.send([command])
      return check.answerOf(lane, reply, command)
    },
    async explain(query) {
      const lane = laneOfTenant(redis, query.tenant)
      const command = await check.command(lane.keys, query, { trace: true })
      const [reply] = await lane.send([command])
      return check.explanationOf(lane, reply, command)
    },
  }
}

/** The outcomes of the script, by their numbers in `walk.lua`. */
const DECISIONS: readonly RelationDecision[] = [
  { outcome: 'denied' },
  { outcome: 'allowed' },
  { outcome: 'unknown', why: 'negated_cycle' },
  { outcome: 'unknown', why: 'max_depth_exceeded' },
  { outcome: 'unknown', why: 'max_work_exceeded' },
]

function readDecision(outcome: unknown): RelationDecision {
  const decision = typeof outcome === 'number' ? DECISIONS[outcome] : undefined
  if (decision === undefined) throw malformed()
  return decision
}

type Growing = RelationStep & { readonly steps: RelationStep[] }

function traceOf(result: unknown): RelationTrace {
  const [, , work, truncated, rows] = listOf(result)
  if (typeof work !== 'number') throw malformed()
  const steps: Growing[] = []
  for (const row of listOf(rows)) {
    const [parent, ...rest] = listOf(row)
    const step = readStep(rest)
    const above = typeof parent === 'number' ? steps[parent - 1] : undefined
    // The first step has no parent. Each other step has a parent that precedes it.
    if (steps.length > 0 && above === undefined) throw malformed()
    above?.steps.push(step)
    steps.push(step)
  }
  const [root] = steps
  if (root === undefined) throw malformed()
  return { root, truncated: truncated === 1, work }
}

function readStep([rule, node, tuple, note, outcome]: readonly unknown[]): Growing {
  const knownRule = TRACED_RULES.find((each) => each === rule)
  const knownNote = TRACE_NOTES.find((each) => each === note)
  if (knownRule === undefined || typeof node !== 'string' || typeof tuple !== 'string')
    throw malformed()
  return {
    rule: knownRule,
    node,
    ...(tuple !== '' && { tuple }),
    ...(knownNote !== undefined && { note: knownNote }),
    ...readDecision(outcome),
    steps: [],
  }
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw malformed()
}

const malformed = () => new Unavailable('redis', 'malformed')
