/** Answers an admission query in one call to Redis, which usually contains one script. */
import { Unavailable } from '../../../errors.ts'
import {
  type RedisCommand,
  type RedisConnection,
  type RedisReply,
  sentOnce,
  type UsedSocket,
} from '../../../redis/connection.ts'
import { readResult } from '../../../redis/reply.ts'
import { scriptReplies } from '../../../redis/script.ts'
import type { RelationCheck } from '../../relations/redis/check.ts'
import type { FeedCursor, FeedReply } from '../../revocation/feed.ts'
import { FEED_SCRIPT, feedCommand, readFeedReply } from '../../revocation/redis/feed.ts'
import type { LimitRequest } from '../limit.ts'
import type { AdmissionFacts, AdmissionQuery, AdmissionStore, CallerStore } from '../store.ts'
import { isExact } from './exact-limit.ts'
import type { PendingLimits, PipelinedEngine } from './limit-engine.ts'
import { type AdmissionScript, EXACT_ADMISSION, findMeterScripts } from './meter.ts'
import { createReader, createRedisReferenceResolver } from './reference-resolver.ts'

/** Creates the adapter of {@link createRedisCallerStore} for opaque tokens and API keys as well. */
export function createRedisAdmissionStore(
  connection: RedisConnection,
  relations?: RelationCheck,
): AdmissionStore {
  return {
    ...createRedisCallerStore(connection, relations),
    resolve: createRedisReferenceResolver(connection),
  }
}

/**
 * Creates the adapter for Upstash Redis. One `EVALSHA` reads revocation, cutoffs and bans, marks a
 * proof of possession as used, takes the cost of the request from all exact limits or from none,
 * and grants leases. Its keys belong to the caller, so calls for different callers do not lock each
 * other out. Limits of the other engine are in the same call, and are counted separately.
 *
 * An earlier command of the call reads the revocation feed. So the admission sees every change
 * before the reported position of the feed; later changes are in the next report.
 *
 * With `relations`, the same as for `createUpstashRelationAuthority`, another command of the call
 * checks the relation of a query. Its result does not affect the other facts, and they do not
 * affect it.
 */
export function createRedisCallerStore(
  connection: RedisConnection,
  relations?: RelationCheck,
): CallerStore {
  return {
    keys: connection.keys,
    read: createReader(connection),
    consult: createConsultation(connection, relations),
  }
}

/** In the command of a script: the number of its keys. */
const KEY_COUNT = 2
/** The reply of a script that finds none of its keys. */
const NOTHING_FOUND = [0, 0]

/**
 * Creates `consult` of an {@link AdmissionStore}. It records the socket of its first call in `over`; see
 * `SendOptions`.
 */
export function createConsultation(connection: RedisConnection, relations?: RelationCheck) {
  // Never retried: a second call would find the proof used, or return units twice.
  const once = sentOnce(connection)

  return async function consult(query: AdmissionQuery, over?: UsedSocket): Promise<AdmissionFacts> {
    const redis = query.proof === undefined && query.isRenewal !== true ? connection : once
    const admission = findMeterScripts(query.limits) ?? EXACT_ADMISSION
    const known = admission.script.name(redis)
    const command = admission.commandOf(
      typeof known === 'string' ? known : await known,
      redis.keys,
      query,
    )
    const scripts = query.since ? [await feedCommand(redis, query.since)] : []
    // Without a key the script finds nothing, and no node of a cluster would run it.
    if (command[KEY_COUNT] !== 0) scripts.push(command)
    const others = query.limits.filter(({ rule }) => !isExact(rule))
    if (others.length === 0 && query.relation === undefined) {
      const replies = scripts.length > 0 ? await redis.send(scripts, over && { over }) : []
      return factsIn(redis, query, scripts, replies, admission)
    }
    if (query.relation !== undefined && relations === undefined)
      throw new TypeError('consult: createUpstashAdmissionStore() needs the check of relations')
    const pending = prepareOthers(others, redis)
    const check = query.relation && (await relations?.command(redis.keys, query.relation))
    const replies = await redis.send([...scripts, ...pending.commands, ...(check ? [check] : [])])
    const facts = await factsIn(redis, query, scripts, replies, admission)
    const end = scripts.length + pending.commands.length
    const states = (await pending.settle(replies.slice(scripts.length, end))).values()
    const limits = query.limits.map(({ rule }, index) =>
      isExact(rule) ? facts.limits[index] : states.next().value,
    )
    if (check === undefined) return { ...facts, limits }
    const answer = relations?.answerOf(redis, replies[end], check)
    const relation = await answer?.catch(onlyUnavailable)
    return { ...facts, limits, relation }
  }
}

/** Parses the first replies of a call: of the feed, if the call reads it, and of the admission. */
function factsIn(
  redis: RedisConnection,
  query: AdmissionQuery,
  commands: readonly RedisCommand[],
  replies: readonly RedisReply[],
  admission: AdmissionScript,
): AdmissionFacts | Promise<AdmissionFacts> {
  const isUnanswered = commands.some((_, at) => replies[at]?.error !== undefined)
  if (!isUnanswered) return parsedFacts(redis, query, commands.length, replies, replies, admission)
  const sent = commands.map((command, at) => ({
    script: query.since && at === 0 ? FEED_SCRIPT : admission.script,
    command,
    reply: replies[at],
  }))
  return scriptReplies(redis, sent).then((all) =>
    parsedFacts(redis, query, commands.length, all, replies, admission),
  )
}

/** `all` are the first replies, with those of commands that were sent again. */
function parsedFacts(
  redis: RedisConnection,
  query: AdmissionQuery,
  commands: number,
  all: readonly (RedisReply | undefined)[],
  replies: readonly RedisReply[],
  admission: AdmissionScript,
): AdmissionFacts {
  const { since } = query
  const at = since ? 1 : 0
  const result = at < commands ? readResult(all[at]) : NOTHING_FOUND
  const facts = admission.factsOf(result, query, Date.now(), redis)
  if (since === undefined) return facts
  const feed = feedIn(all[0], since)
  // If the feed command was sent again, it may have run after the admission. A change between the
  // two is in neither reply, so the new position must not be used as a mark for this admission.
  const isLate = all[0] !== replies[0]
  return { ...facts, feed: isLate && feed.changed === undefined ? unreadable(since) : feed }
}

const unreadable = (since: FeedCursor): FeedReply => ({ since, position: '', changed: undefined })

function feedIn(reply: RedisReply | undefined, since: FeedCursor): FeedReply {
  return reply?.error === undefined ? readFeedReply(reply?.result, since) : unreadable(since)
}

/** Prepares the commands of the limits that are not exact. They bring their engine with them. */
function prepareOthers(limits: readonly LimitRequest[], redis: RedisConnection): PendingLimits {
  const engine = limits[0]?.rule.engine as PipelinedEngine | undefined
  return engine?.prepareLimits(limits, redis) ?? { commands: [], settle: async () => [] }
}

/** Returns the `Unavailable` of one check: the rest of the reply is still valid. */
function onlyUnavailable(error: unknown): Unavailable {
  if (error instanceof Unavailable) return error
  throw error
}
