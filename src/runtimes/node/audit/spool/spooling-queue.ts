/** The queue of a gateway with a spool: a batch is in Redis or on the disk. */
import type { QueueBinding } from '../../../../audit/queue/audit-queue.ts'
import { isUntil } from '../../../../isolate/period.ts'

/** A queue that works takes less than a millisecond. The response waits meanwhile. */
const SPOOL_AFTER_MS = 50
/** After a failure, batches go directly to the spool. The next batch then probes the queue. */
const COOL_DOWN_MS = 1_000

export interface SpoolingQueueOptions {
  readonly queue: QueueBinding
  /** Stores events on the disk. Rejects if they are not stored. */
  readonly spool: (events: readonly string[]) => Promise<void>
  readonly now?: () => number
}

/**
 * Creates the queue. A batch that `queue` refuses, or has not accepted after 50 ms, goes to the spool.
 * It may be in both, with the same ids. `sendBatch` rejects if neither accepts the batch.
 */
export function spoolingQueue({
  queue,
  spool,
  now = () => Date.now(),
}: SpoolingQueueOptions): QueueBinding {
  /** 0: the queue works. */
  let probeAtMs = 0

  return {
    async sendBatch(messages) {
      let sending: Promise<unknown> | undefined
      if (!isUntil(probeAtMs, COOL_DOWN_MS, now())) {
        // One batch probes. Those beside it go to the spool.
        if (probeAtMs > 0) probeAtMs = now() + COOL_DOWN_MS
        sending = queue.sendBatch(messages)
        if (await isAcceptedSoon(sending)) {
          probeAtMs = 0
          return
        }
        probeAtMs = now() + COOL_DOWN_MS
      }
      try {
        await spool(messages.map(({ body }) => body))
      } catch {
        await (sending ?? queue.sendBatch(messages))
      }
    },
  }
}

/** Returns false if `work` has failed, or has not ended after 50 ms. */
function isAcceptedSoon(work: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  // A busy event loop runs timers late, and before it reads a reply that has arrived.
  const timer = setTimeout(() => setImmediate(resolve, false), SPOOL_AFTER_MS)
  work
    .then(
      () => resolve(true),
      () => resolve(false),
    )
    .finally(() => clearTimeout(timer))
  return promise
}
