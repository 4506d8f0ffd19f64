/** Sends the audit trail to a Cloudflare Queue, or to the overflow while the queue fails. */
import { isUntil } from '../../isolate/period.ts'
import { recordId } from '../../isolate/random-ids.ts'
import { type AuditTally, newAuditTally } from '../../isolate/tally.ts'
import { sleep as sleepFor, withDeadline } from '../../isolate/timers.ts'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '../batch.ts'
import type { AuditTransport } from '../batching-sink.ts'
import { lostEvent } from '../event.ts'
import type { AuditOverflow } from '../overflow.ts'
import { serializeEvent, utf8Length } from '../truncate.ts'

/** An overloaded queue takes up to a minute to return an error. */
const QUEUE_TIMEOUT_MS = 3_000
/** The call runs after the response, so it may take longer than a call within a request. */
export const OVERFLOW_TIMEOUT_MS = 2_000
const ATTEMPTS = 2
const RETRY_DELAY_MS = 100
/** Between attempts of a batch that no store accepts, while `keepsTrying` returns true. */
const PATIENCE_DELAY_MS = 1_000
/** After a failure, batches go directly to the overflow. The next batch then probes the queue. */
const QUEUE_COOL_DOWN_MS = 5_000
/** How often an isolate checks the overflow for events of other isolates. */
const DRAIN_INTERVAL_MS = 30_000
const LOG_INTERVAL_MS = 60_000

/** The part of a Queue binding that is used. Bodies are the events as JSON, sent as text. */
export interface QueueBinding {
  sendBatch(
    messages: readonly { readonly body: string; readonly contentType: 'text' }[],
  ): Promise<unknown>
}

export interface AuditQueueOptions {
  readonly queue: QueueBinding
  /** Without it, events that the queue does not accept are lost and counted. */
  readonly overflow?: AuditOverflow
  readonly now?: () => number
  /** Default: a UUIDv7. */
  readonly newId?: () => string
  readonly sleep?: (ms: number) => Promise<void>
  /** Writes a line for an operator, at most one a minute. Default `console.warn`. */
  readonly warn?: (line: string) => void
  readonly tally?: AuditTally
  /** Default 3,000. */
  readonly queueTimeoutMs?: number
  /**
   * While it returns true, a batch that neither store accepts is tried again each second. The sink bounds
   * the memory of such batches. Default: never, because a Worker may end at any time.
   */
  readonly keepsTrying?: (() => boolean) | undefined
}

export interface AuditQueue extends AuditTransport {
  /** Returns false for some seconds after the queue failed to accept a batch. */
  takesEvents(): boolean
}

/**
 * Creates an {@link AuditTransport} for one isolate. Without `keepsTrying`, sending a batch takes at most
 * about 10 s: two attempts at the queue, then two at the overflow.
 *
 * After a batch succeeds, the transport sends the events in the overflow, one batch at a time. It
 * removes them only after the queue accepted them, so an event may be delivered twice but is not
 * lost. This includes the event with which the overflow reports lost events.
 *
 * Events that neither store accepted are counted here. The count is sent as an `audit_lost` event
 * when the queue works again, or passed to the overflow with the next batch. Events count as lost
 * as well if they were stored but the response of each attempt was lost.
 */
export function createAuditQueue({
  queue,
  overflow,
  now = () => Date.now(),
  newId = recordId,
  sleep = sleepFor,
  warn = (line) => console.warn(line),
  tally = newAuditTally(),
  queueTimeoutMs = QUEUE_TIMEOUT_MS,
  keepsTrying = () => false,
}: AuditQueueOptions): AuditQueue {
  let unreported = 0
  let queueShunnedUntilMs = 0
  let drainAtMs: number | undefined
  let logAtMs = 0
  /** The last of the batches that wait, each for the one before it: only the first tries the stores. */
  let line: Promise<void> | undefined

  const isShunned = () => isUntil(queueShunnedUntilMs, QUEUE_COOL_DOWN_MS, now())

  /** Returns undefined if each attempt failed. */
  async function retried<Value>(attempt: () => Promise<Value>): Promise<Value | undefined> {
    for (let made = 1; made <= ATTEMPTS; made += 1) {
      try {
        return await attempt()
      } catch {
        if (made < ATTEMPTS) await sleep(RETRY_DELAY_MS)
      }
    }
    return undefined
  }

  async function enqueue(events: readonly string[]): Promise<boolean> {
    const messages = events.map((body) => ({ body, contentType: 'text' as const }))
    const isSent = await retried(async () => {
      await withDeadline(queue.sendBatch(messages), queueTimeoutMs)
      return true
    })
    if (isSent) return true
    queueShunnedUntilMs = now() + QUEUE_COOL_DOWN_MS
    return false
  }

  /** Returns false if the overflow did not accept the events. */
  async function keep(events: readonly string[]): Promise<boolean> {
    const carried = unreported
    unreported = 0
    // The same id for each attempt: the first may have succeeded although its response was lost.
    const id = newId()
    /** How many events exceeded the bound; undefined if none was accepted. */
    const cut =
      overflow &&
      (await retried(() => withDeadline(overflow.keep(id, events, carried), OVERFLOW_TIMEOUT_MS)))
    if (cut === undefined) {
      unreported += carried
      return false
    }
    tally.spilled += events.length
    tally.lost += cut
    drainAtMs = 0
    complain()
    return true
  }

  function complain(): void {
    if (now() < logAtMs) return
    logAtMs = now() + LOG_INTERVAL_MS
    warn(`audit: the queue takes no events; ${tally.lost} lost so far, the others are kept`)
  }

  async function drain(): Promise<void> {
    drainAtMs ??= now() + DRAIN_INTERVAL_MS
    if (overflow === undefined || now() < drainAtMs) return
    // Set before the first await, so that no other request of this isolate drains as well.
    drainAtMs = now() + DRAIN_INTERVAL_MS
    const reading = overflow.peek(MAX_BATCH_MESSAGES, lostText)
    const kept = await withDeadline(reading, OVERFLOW_TIMEOUT_MS)
    // The event comes first, so that the size limit of a batch never cuts it off.
    const lostEvents = kept.lostEvent === undefined ? [] : [kept.lostEvent]
    const batch = oneBatchOf([...lostEvents, ...kept.events])
    if (batch.length === 0 || !(await enqueue(batch))) return
    const events = batch.slice(lostEvents.length)
    tally.sent += events.length
    await withDeadline(overflow.forget({ ...kept, events }), OVERFLOW_TIMEOUT_MS)
    drainAtMs = 0
  }

  const lostText = (lost: number) => serializeEvent(lostEvent(lost, newId(), now()))

  async function reportLost(): Promise<void> {
    if (unreported === 0) return
    const lost = unreported
    unreported = 0
    if (!(await enqueue([lostText(lost)]))) unreported += lost
  }

  /** Returns false if neither store accepted the events. */
  async function deliver(events: readonly string[]): Promise<boolean> {
    if (isShunned() || !(await enqueue(events))) return keep(events)
    tally.sent += events.length
    // If the overflow is unavailable, its events stay there, and a later call sends them.
    await drain().catch(() => {})
    await reportLost()
    return true
  }

  async function persist(events: readonly string[]): Promise<void> {
    while (!(await deliver(events))) {
      complain()
      if (!keepsTrying()) return lose(events)
      await sleep(PATIENCE_DELAY_MS)
    }
  }

  function lose(events: readonly string[]): void {
    unreported += events.length
    tally.lost += events.length
    complain()
  }

  return {
    async send(events, lost) {
      unreported += lost
      tally.lost += lost
      if (line === undefined || !keepsTrying()) {
        if (await deliver(events)) return
        if (!keepsTrying()) return lose(events)
      }
      const delivered = (line ?? Promise.resolve()).then(() => persist(events))
      line = delivered
      await delivered
      if (line === delivered) line = undefined
    },
    takesEvents: () => !isShunned(),
  }
}

function oneBatchOf(events: readonly string[]): readonly string[] {
  let bytes = 0
  const tooMuch = events.findIndex((event, at) => {
    bytes += utf8Length(event)
    return at >= MAX_BATCH_MESSAGES || bytes > MAX_BATCH_BYTES
  })
  return tooMuch === -1 ? events : events.slice(0, tooMuch)
}
