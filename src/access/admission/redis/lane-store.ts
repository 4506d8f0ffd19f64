/** Answers an admission query over the lanes of a cluster, in one round of parallel calls. */
import { Unavailable } from '../../../errors.ts'
import type { RedisConnection, UsedSocket } from '../../../redis/connection.ts'
import { renamed } from '../../../redis/keys.ts'
import type { ClusterConnection } from '../../../redis/lanes.ts'
import { scriptResult } from '../../../redis/script.ts'
import type { BanKey } from '../../abuse/ban.ts'
import type { RelationCheck } from '../../relations/redis/check.ts'
import { laneOfTenant } from '../../relations/redis/keys.ts'
import type { FeedCursor, FeedReply } from '../../revocation/feed.ts'
import { FEED_SCRIPT, feedCommand, readFeedReply } from '../../revocation/redis/feed.ts'
import type { RevocationKeys } from '../../revocation/revocation.ts'
import type { AdmissionFacts, AdmissionQuery, AdmissionStore, CallerKeys } from '../store.ts'
import { createLaneResolver } from './lane-references.ts'
import { findOnlyLane, joinLegs, type Leg, type LegFacts, planLegs } from './legs.ts'
import { createReader } from './reference-resolver.ts'
import { giveBack } from './refund.ts'
import { createConsultation, createRedisAdmissionStore } from './store.ts'

/**
 * Creates the store for a connection with lanes; without lanes, that of one server. The lane of the
 * caller answers what one server would. Windows of other lanes, and the relation, are further calls of
 * the same round. If one leg refuses the request, the others give back what they took; the answer does
 * not wait for that.
 *
 * The feed is that of all lanes together. `onRefund` receives each refund, as a promise that
 * never rejects: whether the units are free.
 */
export function createLaneAdmissionStore(
  connection: RedisConnection,
  relations?: RelationCheck,
  onRefund?: (done: Promise<boolean>) => void,
): AdmissionStore {
  const { keys, lanes } = connection
  return lanes === undefined
    ? createRedisAdmissionStore(connection, relations)
    : storeOver({ ...connection, keys, lanes }, relations, onRefund)
}

function storeOver(
  connection: ClusterConnection,
  relations: RelationCheck | undefined,
  onRefund: ((done: Promise<boolean>) => void) | undefined,
): AdmissionStore {
  const { keys, lanes } = connection
  const consultations = new Map(lanes.all.map((lane) => [lane, createConsultation(lane)]))
  const readers = new Map(lanes.all.map((lane) => [lane, createReader(lane)]))

  const consultationOf = (lane: RedisConnection) =>
    consultations.get(lane) ?? createConsultation(lane)

  async function askLane({ lane, query }: Leg, over: UsedSocket): Promise<LegFacts> {
    try {
      return await consultationOf(lane)(query, over)
    } catch (error) {
      if (error instanceof Unavailable) return error
      throw error
    }
  }

  const inLane = <Item extends { readonly key: string }>(lane: RedisConnection, item: Item) => ({
    ...item,
    key: renamed(item.key, keys, lane.keys),
  })
  /** Each request of a principal has the same keys, and the same lane. */
  const revocationIn = onePerLane<RevocationKeys>((lane, { token, revokedBefore, ...rest }) => ({
    ...rest,
    token: token && renamed(token, keys, lane.keys),
    revokedBefore: revokedBefore.map((each) => inLane(lane, each)),
  }))
  const subjectBanIn = onePerLane<BanKey>(inLane)
  /** The ban of an address is not kept: callers of many lanes can have one address. */
  const banIn = (lane: RedisConnection, ban: BanKey): BanKey =>
    ban.by === 'subject' ? subjectBanIn(lane, ban) : inLane(lane, ban)

  /** Most queries have one leg. There are thousands a second, so they take the short way. */
  function consult(query: AdmissionQuery): Promise<AdmissionFacts> {
    const isPlain = query.since === undefined && query.relation === undefined
    const lane = isPlain ? findOnlyLane(connection, query) : undefined
    return lane === undefined
      ? consultLegs(query)
      : consultationOf(lane)({
          ...query,
          revocation: revocationIn(lane, query.revocation),
          bans: query.bans.map((ban) => banIn(lane, ban)),
          ...(query.observedBans && {
            observedBans: query.observedBans.map((ban) => banIn(lane, ban)),
          }),
        })
  }

  async function consultLegs(query: AdmissionQuery): Promise<AdmissionFacts> {
    const { since, relation } = query
    const legs = planLegs(connection, query)
    const positions = since?.position.split(SEPARATOR)
    /** Returns the cursor of one lane, if the query reads the feed. */
    const cursorOf = (lane: RedisConnection): FeedCursor | undefined =>
      since && { ...since, position: positions?.[lanes.all.indexOf(lane)] ?? '' }
    const sockets = legs.map((): UsedSocket => ({}))
    const check = relation && checkRelation(connection, relations, relation)
    // A rejection that this function does not await, because a leg failed before, would end the process.
    check?.catch(() => {})
    /** The first leg reads the feed before its admission, which so sees every reported change. */
    async function feedOf(lane: RedisConnection, cursor: FeedCursor): Promise<FeedReply> {
      try {
        if (lane !== legs[0]?.lane) return await readFeed(lane, cursor)
        const answer = await answers[0]
        return answer instanceof Unavailable
          ? unreadable(cursor)
          : (answer?.feed ?? unreadable(cursor))
      } catch {
        return unreadable(cursor)
      }
    }
    const answers = legs.map((leg, at) => {
      const { lane, query: part } = leg
      const own = at === 0 ? cursorOf(lane) : undefined
      return askLane(own ? { ...leg, query: { ...part, since: own } } : leg, sockets[at] ?? {})
    })
    const feeds = since && lanes.all.map((lane) => feedOf(lane, cursorOf(lane) ?? since))
    const found = await Promise.all(answers)
    const { facts, refunds, failure } = joinLegs(query, legs, found)
    for (const [at, limits] of refunds.entries()) {
      const [leg, answer, over] = [legs[at], found[at], sockets[at]]
      if (leg === undefined || over === undefined || limits.length === 0) continue
      if (answer === undefined || answer instanceof Unavailable) continue
      const { takenMicros } = answer
      if (takenMicros === undefined) continue
      const done = giveBack({ lane: leg.lane, limits, takenMicros, over })
      onRefund?.(done)
      for (const state of answer.limits)
        if (state !== undefined && 'slot' in state) void state.slot?.release()
    }
    if (failure !== undefined) throw failure
    const whole = { ...facts, relation: await check }
    if (since === undefined || feeds === undefined) return whole
    return { ...whole, feed: joinFeeds(since, await Promise.all(feeds), lanes.all, keys) }
  }

  return {
    keys,
    consult,
    resolve: createLaneResolver(connection, consult),

    async read(callers) {
      const byLane = new Map<RedisConnection, CallerKeys[]>()
      for (const { caller, keys: names } of callers) {
        const lane = lanes.of(caller)
        const inLane = { caller, keys: names.map((name) => renamed(name, keys, lane.keys)) }
        const known = byLane.get(lane)
        if (known === undefined) byLane.set(lane, [inLane])
        else known.push(inLane)
      }
      const all = new Map<string, number | undefined>()
      const parts = [...byLane].map(async ([lane, of]) => {
        const values = await (readers.get(lane) ?? createReader(lane))(of)
        // While a fact is written to the lanes one by one, the lanes differ: the later value applies.
        for (const [name, value = -1] of values) {
          const own = renamed(name, lane.keys, keys)
          const latest = Math.max(all.get(own) ?? -1, value)
          all.set(own, latest < 0 ? undefined : latest)
        }
      })
      await Promise.all(parts)
      return all
    },
  }
}

const unreadable = (since: FeedCursor): FeedReply => ({ since, position: '', changed: undefined })

/** Separates the positions of the lanes. A position contains none. */
const SEPARATOR = '\n'

/** Reads the feed of one lane. */
async function readFeed(lane: RedisConnection, since: FeedCursor): Promise<FeedReply> {
  const command = await feedCommand(lane, since)
  const [reply] = await lane.send([command])
  return readFeedReply(await scriptResult(lane, { script: FEED_SCRIPT, command, reply }), since)
}

/** Joins the replies of all lanes, in their order: readable if each of them is. */
function joinFeeds(
  since: FeedCursor,
  replies: readonly FeedReply[],
  lanes: readonly RedisConnection[],
  keys: RedisConnection['keys'],
): FeedReply {
  if (replies.some(({ position }) => position === '')) return unreadable(since)
  const isKnown = replies.every(({ changed }) => changed !== undefined)
  const changed = replies.flatMap((reply, at) =>
    (reply.changed ?? []).map((name) => renamed(name, lanes[at]?.keys ?? keys, keys)),
  )
  return {
    since,
    position: replies.map(({ position }) => position).join(SEPARATOR),
    changed: isKnown ? changed : undefined,
  }
}

/** Checks a relation in the lane of its tenant. Returns `Unavailable` if only this check failed. */
async function checkRelation(
  connection: RedisConnection,
  relations: RelationCheck | undefined,
  query: NonNullable<AdmissionQuery['relation']>,
): Promise<AdmissionFacts['relation']> {
  if (relations === undefined)
    throw new TypeError('consult: createUpstashAdmissionStore() needs the check of relations')
  const lane = laneOfTenant(connection, query.tenant)
  const command = await relations.command(lane.keys, query)
  try {
    const [reply] = await lane.send([command])
    return await relations.answerOf(lane, reply, command)
  } catch (error) {
    if (error instanceof Unavailable) return error
    throw error
  }
}

/** Caches the last result of `make` for each value. Calls `make` again for a value in another lane. */
function onePerLane<Value extends object>(make: (lane: RedisConnection, value: Value) => Value) {
  const made = new WeakMap<Value, { readonly lane: RedisConnection; readonly value: Value }>()
  return (lane: RedisConnection, value: Value): Value => {
    const known = made.get(value)
    if (known?.lane === lane) return known.value
    const own = make(lane, value)
    made.set(value, { lane, value: own })
    return own
  }
}
