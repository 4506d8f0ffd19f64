/** The audit sink of a process on Node: a response waits until its event is in the queue. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_PENDING_BYTES } from '../../../audit/batch.ts'
import { type BatchingSinkOptions, SHED_EVENTS_PER_SECOND } from '../../../audit/batching-sink.ts'
import type { AuditSink } from '../../../audit/event.ts'
import { serializeEvent, utf8Length } from '../../../audit/truncate.ts'
import { withDeadline } from '../../../isolate/timers.ts'
import { createWriteBudget } from '../../../isolate/write-budget.ts'

/** A queue that works takes less than a millisecond. */
const DEFAULT_MAX_WAIT_MS = 100
/** The result of `reasonOf` for a request that `shedLoad` refused. */
const SHED = 'gateway:overloaded'

interface AwaitedSinkOptions extends Pick<BatchingSinkOptions, 'transport' | 'now'> {
  /** How long a response waits for its event. */
  readonly maxWaitMs?: number | undefined
}

interface Batch {
  readonly events: string[]
  bytes: number
  /** Resolves when the events are in the queue, or elsewhere, or counted as lost. */
  readonly sent: Promise<void>
  /** Resolves as `sent`, and after `maxWaitMs` at the latest. */
  readonly waited: Promise<void>
}

/**
 * Creates the sink. It sends all events of one turn of the event loop together. `record` returns a
 * promise that resolves when the event is in the queue. So an event of a response survives the end of
 * the process.
 *
 * A queue that fails delays no response: after a batch that took longer than `maxWaitMs` (default 100), no
 * response waits until a batch is fast again. Unsent events are bounded as those of `batchingAuditSink`.
 */
export function awaitedAuditSink({
  transport,
  now = () => Date.now(),
  maxWaitMs = DEFAULT_MAX_WAIT_MS,
}: AwaitedSinkOptions): AuditSink {
  const mayRecordShed = createWriteBudget(SHED_EVENTS_PER_SECOND, now)
  let open: Batch | undefined
  let pendingBytes = 0
  let lost = 0
  let isSlow = false

  function openBatch(): Batch {
    const sent = nextTurn().then(() => send(batch))
    const waited = withDeadline(sent, maxWaitMs).then(
      () => {
        isSlow = false
      },
      () => {
        isSlow = true
      },
    )
    const batch: Batch = { events: [], bytes: 0, sent, waited }
    return batch
  }

  async function send(batch: Batch): Promise<void> {
    if (open === batch) open = undefined
    const lostBefore = lost
    lost = 0
    await transport.send(batch.events, lostBefore)
    pendingBytes -= batch.bytes
  }

  return {
    record(event, waitUntil) {
      const text = serializeEvent(event)
      const bytes = utf8Length(text)
      const isRefused = event.reason === SHED && !mayRecordShed()
      if (isRefused || pendingBytes + bytes > MAX_PENDING_BYTES) {
        lost += 1
        return undefined
      }
      const isFull =
        open !== undefined &&
        (open.events.length === MAX_BATCH_MESSAGES || open.bytes + bytes > MAX_BATCH_BYTES)
      const batch = open === undefined || isFull ? openBatch() : open
      open = batch
      batch.events.push(text)
      batch.bytes += bytes
      pendingBytes += bytes
      waitUntil(batch.sent)
      return isSlow ? undefined : batch.waited
    },
  }
}
