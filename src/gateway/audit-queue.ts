/** Composes the queue of audit events. */

import {
  type AuditQueue,
  createAuditQueue,
  OVERFLOW_TIMEOUT_MS,
} from '../audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../audit/redis/overflow.ts'
import type { AuditTally } from '../isolate/tally.ts'
import { createRedisRest } from '../redis/rest.ts'
import type { Config } from '../validators/environment.ts'

/**
 * Creates the queue, with its overflow in Redis. Returns undefined for a Worker without a queue,
 * which writes its events to the log.
 */
export function auditQueueOf(
  queue: Queue | undefined,
  { redis }: Config,
  tally: AuditTally,
): AuditQueue | undefined {
  if (queue === undefined) return undefined
  const overflowRedis = createRedisRest({ ...redis, timeoutMs: OVERFLOW_TIMEOUT_MS })
  const overflow = createAuditOverflow({ redis: overflowRedis })
  return createAuditQueue({ queue, overflow, tally })
}

/** Checks readiness: rejects while the queue refuses batches. */
export async function queueTakesEvents(queue: AuditQueue): Promise<void> {
  if (!queue.takesEvents()) throw new Error('the queue refused the last batch')
}
