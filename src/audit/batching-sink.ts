/** An audit sink that collects the events of an isolate's requests and sends them in batches. */
import { sleep as sleepFor } from '../isolate/timers.ts'
import { createWriteBudget } from '../isolate/write-budget.ts'
import { BATCH_OPEN_MS, type Batch, createBatches, type Duty, NO_DUTY } from './batch.ts'
import type { AuditSink } from './event.ts'
import { serializeEvent } from './truncate.ts'

/** Port: sends batches. Never rejects. */
export interface AuditTransport {
  /**
   * Sends at most 100 events as JSON, and the number of events that were lost before them. Resolves
   * when the events are delivered, stored elsewhere, or counted as lost; that count is reported when
   * sending works again.
   */
  send(events: readonly string[], lost: number): Promise<void>
}

export interface BatchingSinkOptions {
  readonly transport: AuditTransport
  readonly now?: () => number
  readonly sleep?: ((ms: number) => Promise<void>) | undefined
}

/** The result of `reasonOf` for a request that `shedLoad` refused. */
const SHED = 'gateway:overloaded'
/** Events of shed requests above this rate are counted as lost. */
export const SHED_EVENTS_PER_SECOND = 100

/**
 * Creates an {@link AuditSink} for one isolate. The request that opens a batch waits up to 50 ms
 * for others to join, then sends it. All of this happens after its response.
 *
 * Delivery is at least once while the isolate lives. If the platform ends the request that sends a
 * batch, a later request sends the batch again. So the receiver must be idempotent.
 *
 * Shed requests come in floods and must not displace other events. Above 100 events a second, they
 * are only counted, as lost events are. Events do NOT survive the end of the isolate within those
 * 50 ms or while they are being sent.
 */
export function batchingAuditSink({
  transport,
  now = () => Date.now(),
  sleep = sleepFor,
}: BatchingSinkOptions): AuditSink {
  const batches = createBatches()
  const mayRecordShed = createWriteBudget(SHED_EVENTS_PER_SECOND, now)

  async function send(batch: Batch): Promise<void> {
    await transport.send(batch.messages, batches.takeLost())
    batches.settle(batch)
  }

  async function hold(batch: Batch): Promise<void> {
    await sleep(BATCH_OPEN_MS)
    if (batches.take(batch, now())) await send(batch)
  }

  async function fulfil(duty: Duty): Promise<void> {
    const overdue = batches.overdue(now())
    await Promise.all([
      duty.send && send(duty.send),
      duty.hold && hold(duty.hold),
      overdue && send(overdue),
    ])
  }

  return {
    record(event, waitUntil) {
      if (event.reason === SHED && !mayRecordShed()) return batches.lose()
      const duty = batches.add(serializeEvent(event), now())
      if (duty !== NO_DUTY) waitUntil(fulfil(duty))
    },
  }
}
