/** Writes that must survive the loss of a master: revocations, cutoffs, bans and the ends of sessions. */
import type { RedisConnection } from './connection.ts'

/**
 * Returns the connection for such writes. A call throws `Unavailable` if fewer replicas than
 * `replicasAcked` of the connection have received the write in time, although it may be in force then.
 */
export function acknowledged(redis: RedisConnection): RedisConnection {
  const { replicasAcked: acknowledgedBy = 0 } = redis
  if (acknowledgedBy === 0) return redis
  return {
    ...redis,
    send: (commands, options) => redis.send(commands, { ...options, acknowledgedBy }),
  }
}
