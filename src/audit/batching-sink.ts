/** An audit sink that gathers the events of an isolate's requests and sends them together. */
import { createWriteBudget } from '../admission/write-budget.ts'
import { sleep as sleepFor } from '../timers.ts'
import { BATCH_OPEN_MS, type Batch, createBatches, type Duty, NO_DUTY } from './batch.ts'
import type { AuditSink } from './event.ts'
import { serialiseEvent } from './truncate.ts'

/**
 * Port: sends a batch. Never rejects: what cannot be sent is kept elsewhere or counted, and
 * reported once things work again.
 */
export interface AuditTransport {
  /**
   * At most 100 events as JSON, and how many were lost before them. Resolves when the events have
   * arrived, are kept somewhere safe, or are counted as lost.
   */
  send(events: readonly string[], lost: number): Promise<void>
}

export interface BatchingSinkOptions {
  readonly transport: AuditTransport
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  readonly sleep?: (ms: number) => Promise<void>
}

/** `reasonOf` a request that `shedLoad` refused. */
const SHED = 'gateway:overloaded'
/** Of requests that were shed, so many a second become an event; the others are counted as lost. */
export const SHED_EVENTS_PER_SECOND = 100

/**
 * An {@link AuditSink} for one isolate. The request that opens a batch waits up to 50 ms for
 * others to join and sends it, all of it after its own answer. At-least-once as long as the isolate
 * lives: a batch whose sender died is sent by a later request, so the receiver must be idempotent.
 * Requests that were shed come in floods, and must not crowd out the others: what exceeds 100 events
 * a second of them is told by number, as events that are lost are.
 * Does NOT survive the death of the isolate within those 50 ms and the time that sending takes.
 */
export function batchingAuditSink({
  transport,
  now = Date.now,
  sleep = sleepFor,
}: BatchingSinkOptions): AuditSink {
  const batches = createBatches()
  const mayRecordShed = createWriteBudget(SHED_EVENTS_PER_SECOND, now)

  async function send(batch: Batch) {
    await transport.send(batch.messages, batches.takeLost())
    batches.settle(batch)
  }

  async function hold(batch: Batch) {
    await sleep(BATCH_OPEN_MS)
    if (batches.take(batch, now())) await send(batch)
  }

  async function fulfil(duty: Duty) {
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
      const duty = batches.add(serialiseEvent(event), now())
      if (duty !== NO_DUTY) waitUntil(fulfil(duty))
    },
  }
}
