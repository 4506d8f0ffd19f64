/** Changes facts about callers: revocations, cutoffs, bans and plans. */
import { acknowledged } from '../../../redis/acknowledged.ts'
import type { Fact, RedisConnection } from '../../../redis/connection.ts'

/**
 * Changes facts with `write`, and returns after every lane that needs them has them, and as many
 * replicas as the connection demands. Throws `Unavailable` otherwise: the facts may then be in force in
 * some lanes, and any gateway completes them. Without lanes it only calls `write`.
 */
export function writeFacts<Result>(
  redis: RedisConnection,
  facts: readonly Fact[],
  now: () => number,
  write: (control: RedisConnection) => Promise<Result>,
): Promise<Result> {
  const { lanes, broadcast } = redis
  if (broadcast !== undefined) return broadcast.write(facts, now, write)
  if (lanes !== undefined) throw needsBroadcast()
  return write(acknowledged(redis))
}

/** Returns the name of a fact for a script that marks it as pending; see `mark-fact.lua`. Empty: there are no lanes. */
export const markOf = (redis: RedisConnection, fact: Fact): string =>
  redis.broadcast?.nameOf(fact) ?? ''

/** Copies facts that a script has already written in the control lane; see `Broadcast.copy`. */
export async function copyFacts(
  redis: RedisConnection,
  facts: readonly Fact[],
  now: () => number,
  endsAtSeconds?: number,
): Promise<void> {
  if (redis.broadcast !== undefined) await redis.broadcast.copy(facts, now, endsAtSeconds)
  else if (redis.lanes !== undefined) throw needsBroadcast()
}

const needsBroadcast = () => new TypeError('facts: lanes need withBroadcast()')
