/** Writes that must survive the loss of a master: revocations, cutoffs, bans and the ends of sessions. */
import type { RedisConnection } from './connection.ts'
import { replicationKeys } from './keys.ts'
import { readResult } from './reply.ts'

const MARK_SECONDS = 60

/**
 * Returns the connection for such writes. A call throws `Unavailable` if fewer replicas than
 * `replicasAcked` of the connection have received the write in time, although it may be in force then.
 *
 * Each call writes, also one that finds its work done by an earlier call that was not acknowledged: `WAIT` covers what
 * its own socket has written, and all writes before it, but nothing if the socket has written nothing.
 */
export function acknowledged(redis: RedisConnection): RedisConnection {
  const { replicasAcked: acknowledgedBy = 0 } = redis
  if (acknowledgedBy === 0) return redis
  const mark = ['SET', replicationKeys(redis.keys).acknowledged, '1', 'EX', MARK_SECONDS]
  return {
    ...redis,
    async send(commands, options) {
      const replies = await redis.send([...commands, mark], { ...options, acknowledgedBy })
      // Redis refuses the mark without memory, and permissions without its key: then `WAIT` may have covered nothing.
      readResult(replies[commands.length])
      return replies.slice(0, commands.length)
    },
  }
}

/** Whether a change may be stored and yet have failed: then the same call, repeated, must complete it. */
export const mayBeIncomplete = ({ lanes, replicasAcked = 0 }: RedisConnection): boolean =>
  lanes !== undefined || replicasAcked > 0
