/** Asks Upstash Redis whether a relation holds: one script, which may ride in any call. */
import { Unavailable } from '../../errors.ts'
import type { RelationAnswer, RelationQuery } from '../../relations/authority.ts'
import type { RelationModel } from '../../relations/model.ts'
import {
  type ExplainedAnswer,
  type ExplainingAuthority,
  MAX_TRACE_STEPS,
} from '../../relations/trace.ts'
import { isTuple } from '../../relations/tuple.ts'
import { MAX_CONTEXTUAL_TUPLES } from '../../validators/relations.ts'
import { DECISIONS, traceOf } from './relation-check-trace.ts'
import { type RelationKeys, relationKeysOf } from './relation-keys.ts'
import { relationScript } from './relation-script.ts'
import { ARGUMENTS } from './relation-script-walk.ts'
import { versionIn } from './relation-version.ts'
import type { RedisCommand, RedisReply, RedisRest } from './rest.ts'
import { ask, resultOf } from './result.ts'
import { isUnknownScript, scriptName } from './script.ts'

/** How far one check goes. Beyond either it answers `unknown`, not `denied`. */
export interface RelationLimits {
  /** How many tuples may lead on, one after the other (`max_depth_exceeded`). */
  readonly maxDepth: number
  /** Calls within Redis and members of sets that are looked at, together (`max_work_exceeded`). */
  readonly maxWork: number
}

/** The defaults. See docs/decisions/0042 for how they were chosen. */
export const RELATION_LIMITS: RelationLimits = { maxDepth: 25, maxWork: 1_000 }

/** The check of one model, as a command of Redis and what its reply says. */
export interface RelationCheck {
  /**
   * An `EVALSHA` to be sent with others or alone; a promise the first time, and for a tenant with a
   * long name. Throws `TypeError` for what is not written as a tuple is, and for too many contextual
   * tuples: whoever asks has to check. Relations that the model does not have are denied.
   */
  command(
    query: RelationQuery,
    options?: { readonly trace?: boolean },
  ): RedisCommand | Promise<RedisCommand>
  /**
   * What Redis said to `command`; asks once more, in full, where it did not know the script. Throws
   * `Unavailable` where there is no answer that is whole, and (`stale`) where Redis does not know of
   * the version that was asked for.
   */
  answerOf(
    rest: RedisRest,
    reply: RedisReply | undefined,
    command: RedisCommand,
  ): Promise<RelationAnswer>
  /** The same of a command with `trace`, and how it was found. */
  explanationOf(
    rest: RedisRest,
    reply: RedisReply | undefined,
    command: RedisCommand,
  ): Promise<ExplainedAnswer>
}

/** Name of the command, of the script, and the number of keys. */
const HEAD = 3

/**
 * Makes the check of a model from `compileModel`: one script, which holds the model. Default limits: 25
 * tuples, 1,000 calls and members. Throws `TypeError` for a model with names that are none. Does not
 * look at who asks: the tenant of a query is the caller's to set.
 */
export function createRelationCheck(
  model: RelationModel,
  limits: RelationLimits = RELATION_LIMITS,
): RelationCheck {
  const text = relationScript(model)
  /** The name, not its promise: another request may not wait for it. */
  let name: string | undefined

  async function named(query: RelationQuery, maxSteps: number): Promise<RedisCommand> {
    const keys = await relationKeysOf(query.tenant)
    name ??= await scriptName(text)
    return commandOf(name, keys, query, limits, maxSteps)
  }

  async function resultOfScript(
    rest: RedisRest,
    reply: RedisReply | undefined,
    [, , ...tail]: RedisCommand,
  ): Promise<unknown> {
    return isUnknownScript(reply) ? ask(rest, ['EVAL', text, ...tail]) : resultOf(reply)
  }

  return {
    command(query, { trace = false } = {}) {
      const keys = relationKeysOf(query.tenant)
      const maxSteps = trace ? MAX_TRACE_STEPS : 0
      if (name === undefined || keys instanceof Promise) return named(query, maxSteps)
      return commandOf(name, keys, query, limits, maxSteps)
    },
    async answerOf(rest, reply, command) {
      return answerIn(await resultOfScript(rest, reply, command), command)
    },
    async explanationOf(rest, reply, command) {
      const result = await resultOfScript(rest, reply, command)
      return { ...answerIn(result, command), trace: traceOf(result) }
    },
  }
}

function commandOf(
  name: string,
  { tuples, usersets, subjects, version }: RelationKeys,
  { object, relation, subject, contextualTuples, atLeast = 0 }: RelationQuery,
  { maxDepth, maxWork }: RelationLimits,
  maxSteps: number,
): RedisCommand {
  if (!isTuple({ object, relation, subject }) || !contextualTuples.every(isTuple))
    throw new TypeError('relations: what is asked is no tuple')
  if (contextualTuples.length > MAX_CONTEXTUAL_TUPLES)
    throw new TypeError(`relations: more than ${MAX_CONTEXTUAL_TUPLES} contextual tuples`)
  return [
    ...['EVALSHA', name, 0, tuples, usersets, version, object, relation, subject],
    ...[maxDepth, maxWork, maxSteps, atLeast, subjects],
    ...contextualTuples.flatMap((tuple) => [`${tuple.object}#${tuple.relation}`, tuple.subject]),
  ]
}

/** Exactly what the script returns, or `Unavailable`. */
function answerIn(result: unknown, command: RedisCommand): RelationAnswer {
  if (!Array.isArray(result) || result.length !== 5) throw malformed()
  const [outcome, versionText] = result
  const decision = DECISIONS.get(outcome)
  if (decision === undefined) throw malformed()
  const version = versionText === '' ? 0 : versionIn(versionText)
  const atLeast = Number(command[HEAD + ARGUMENTS.atLeast - 1])
  if (!(version >= atLeast)) throw new Unavailable('redis', 'stale')
  return { decision, version }
}

const malformed = () => new Unavailable('redis', 'malformed')

/**
 * Makes the authority that asks by itself: one call to Redis a check, two where Redis does not know the
 * script. Throws `Unavailable` (`redis`), and `TypeError` for queries as `command` does.
 */
export function createUpstashRelationAuthority(
  rest: RedisRest,
  check: RelationCheck,
): ExplainingAuthority {
  return {
    async check(query) {
      const command = await check.command(query)
      const [reply] = await rest.send([command])
      return check.answerOf(rest, reply, command)
    },
    async explain(query) {
      const command = await check.command(query, { trace: true })
      const [reply] = await rest.send([command])
      return check.explanationOf(rest, reply, command)
    },
  }
}
