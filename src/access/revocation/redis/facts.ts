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
  if (lanes !== undefined) throw new TypeError('writeFacts: lanes need withBroadcast()')
  return write(acknowledged(redis))
}

/** Copies facts that a script has already written in the control lane. */
export async function copyFacts(
  redis: RedisConnection,
  facts: readonly Fact[],
  now: () => number,
): Promise<void> {
  if (redis.lanes !== undefined) await writeFacts(redis, facts, now, async () => {})
}
