/** Answers everything that `admit` asks in one call: one script, and nothing else as a rule. */
import type { AdmissionFacts, AdmissionQuery, AdmissionStore } from '../../admission/store.ts'
import { Unavailable } from '../../errors.ts'
import type { RelationAnswer, RelationQuery } from '../../relations/authority.ts'
import { factsOf } from './admission-reply.ts'
import { ADMISSION_SCRIPT, NO_FEED } from './admission-script.ts'
import { leaseArgument } from './exact-lease.ts'
import { isExact, pushExactArguments } from './exact-limit.ts'
import { counterName, overrideKey } from './limit-overrides.ts'
import { createReferenceResolver } from './reference-resolver.ts'
import type { RelationCheck } from './relation-check.ts'
import { type RedisCommand, type RedisReply, type RedisRest, sentOnce } from './rest.ts'
import { ask, resultOf } from './result.ts'
import { FEED_KEY } from './revocation-feed.ts'
import { isUnknownScript, scriptName } from './script.ts'
import { askLimits } from './sliding-window.ts'

/**
 * The adapter over Upstash. One `EVALSHA` reads revocation, cut-offs and bans, uses a proof of
 * possession up, once, and takes what the request costs of all exact limits or of none. Limits of
 * the other engine ride in the same call, and count by themselves. What has changed of revocations is
 * told in it, too, and units are granted ahead.
 *
 * With `relations`, the same that `createUpstashRelationAuthority` is made of, a relation that is asked
 * for is decided by a second command of the call. It decides nothing else, and nothing else decides it.
 */
export function createUpstashAdmissionStore(
  rest: RedisRest,
  relations?: RelationCheck,
): AdmissionStore {
  // Sent again, a proof would look used, and units would come back twice.
  const once = sentOnce(rest)
  /** The name, not its promise: another request may not wait for it. */
  let name: string | undefined

  return {
    resolve: createReferenceResolver(rest),
    async consult(query: AdmissionQuery): Promise<AdmissionFacts> {
      name ??= await scriptName(ADMISSION_SCRIPT)
      const redis = query.proof === undefined && query.isRenewal !== true ? rest : once
      const command = commandOf(name, query)
      const others = query.limits.filter(({ rule }) => !isExact(rule))
      if (others.length === 0 && query.relation === undefined) {
        const [reply] = await redis.send([command])
        return factsOf(await resultOfScript(redis, reply, command), query, Date.now())
      }
      const asked = others.length === 0 ? NO_OTHERS : askLimits(others, rest)
      const checked = query.relation && (await checkCommand(relations, query.relation))
      const replies = await redis.send([command, ...asked.commands, ...(checked ? [checked] : [])])
      const result = await resultOfScript(redis, replies[0], command)
      const facts = factsOf(result, query, Date.now())
      const end = 1 + asked.commands.length
      const states = (await asked.settle(replies.slice(1, end))).values()
      const limits = query.limits.map(({ rule }, index) =>
        isExact(rule) ? facts.limits[index] : states.next().value,
      )
      if (checked === undefined) return { ...facts, limits }
      const relation = await answerOf(() => relations?.answerOf(rest, replies[end], checked))
      return { ...facts, limits, relation }
    },
  }
}

/** The script's keys and arguments, as it wants them. */
function commandOf(name: string, query: AdmissionQuery): RedisCommand {
  const { revocation, bans, observedBans = NONE, limits, proof, since, nowMs } = query
  const exact = limits.filter(({ rule }) => isExact(rule))
  const command: (string | number)[] = ['EVALSHA', name, 0]
  if (revocation.token !== undefined) command.push(revocation.token)
  const tokens = command.length - HEAD
  for (const { key } of revocation.cutOffs) command.push(key)
  const cutOffs = command.length - HEAD
  for (const { key } of bans) command.push(key)
  const inForce = command.length - HEAD
  for (const { key } of observedBans) command.push(key)
  const looked = command.length - HEAD
  for (const { key } of exact) command.push(overrideKey(key))
  for (const { key } of exact) command.push(counterName(key))
  if (proof !== undefined) command.push(proof.replayKey)
  if (since !== undefined) command.push(FEED_KEY)
  command[2] = command.length - HEAD

  command.push(looked, exact.length, proof?.replayTtlSeconds ?? 0)
  command.push(tokens, cutOffs, inForce, revocation.issuedAtSeconds, nowMs)
  command.push(since?.position ?? NO_FEED)
  for (const { rule, ask } of exact) {
    pushExactArguments(command, rule, query.isRenewal)
    command.push(leaseArgument(ask))
  }
  return command
}

const NONE: AdmissionQuery['bans'] = []
const NO_OTHERS: ReturnType<typeof askLimits> = { commands: [], settle: async () => [] }
/** Name of the command, of the script, and the number of keys. */
const HEAD = 3

/** What the script returned; sent in full, once more, where Redis did not know it. */
async function resultOfScript(
  redis: RedisRest,
  reply: RedisReply | undefined,
  [, , ...tail]: RedisCommand,
): Promise<unknown> {
  return isUnknownScript(reply) ? ask(redis, ['EVAL', ADMISSION_SCRIPT, ...tail]) : resultOf(reply)
}

function checkCommand(relations: RelationCheck | undefined, query: RelationQuery) {
  if (relations === undefined)
    throw new TypeError('consult: createUpstashAdmissionStore() needs the check of relations')
  return relations.command(query)
}

/** The answer, or that there is none: what else was asked is worth something without it. */
async function answerOf(
  answer: () => Promise<RelationAnswer> | undefined,
): Promise<RelationAnswer | Unavailable | undefined> {
  try {
    return await answer()
  } catch (error) {
    if (error instanceof Unavailable) return error
    throw error
  }
}
