/** What a gateway needs before it is ready. */
import type { AuditQueue } from '../audit/queue/audit-queue.ts'
import { Unavailable } from '../errors.ts'
import type { RedisConnection } from '../redis/connection.ts'

/** Life of the key that shows that Redis accepts writes. */
const READINESS_SECONDS = 60

/** Throws if the queue refused the last batch. */
export async function requireQueue(queue: AuditQueue): Promise<void> {
  if (!queue.takesEvents()) throw new Error('the queue refused the last batch')
}

/** A Redis that is out of memory or a replica answers, but it refuses the writes that requests need. */
export async function requireWrites(redis: RedisConnection): Promise<void> {
  const [reply] = await redis.send([['SET', redis.keys.readiness, '1', 'EX', READINESS_SECONDS]])
  if (reply?.result !== 'OK') throw new Unavailable('redis', 'refused')
}
