/** Where audit events go, made of an environment. */
import type { Config } from '../config.ts'
import type { AuditTally } from '../metrics/tally.ts'
import { type AuditQueue, createAuditQueue, SPILL_TIMEOUT_MS } from '../stores/queue/audit-queue.ts'
import { createAuditSpill } from '../stores/upstash/audit-spill.ts'
import { createRedisRest } from '../stores/upstash/rest.ts'

/** Undefined for a Worker without a queue, which writes its events to the log. */
export function auditQueueOf(
  queue: Queue | undefined,
  { redis }: Config,
  tally: AuditTally,
): AuditQueue | undefined {
  if (queue === undefined) return undefined
  const spillRedis = createRedisRest({ ...redis, timeoutMs: SPILL_TIMEOUT_MS })
  const spill = createAuditSpill({ redis: spillRedis })
  return createAuditQueue({ queue, spill, tally })
}

/** For readiness: rejects while the queue refuses batches. */
export async function queueTakesEvents(queue: AuditQueue): Promise<void> {
  if (!queue.takesEvents()) throw new Error('the queue refused a batch a moment ago')
}
