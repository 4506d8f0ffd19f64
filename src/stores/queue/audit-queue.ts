/** The audit trail over a Cloudflare Queue, with somewhere to go when the queue fails. */
import { v7 } from 'uuid'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '../../audit/batch.ts'
import type { AuditTransport } from '../../audit/batching-sink.ts'
import { lostEvent } from '../../audit/lost.ts'
import type { AuditSpill } from '../../audit/spill.ts'
import { serialiseEvent, utf8Length } from '../../audit/truncate.ts'
import { type AuditTally, newAuditTally } from '../../metrics/tally.ts'
import { sleep as sleepFor, withDeadline } from '../../timers.ts'

/** A queue that is overloaded hangs for up to a minute before it says so. */
export const QUEUE_TIMEOUT_MS = 3_000
const QUEUE_ATTEMPTS = 2
const RETRY_DELAY_MS = 100
/** After a failure batches go straight to the spill for so long; the next one then probes. */
export const QUEUE_COOL_DOWN_MS = 5_000
/** After the answer, so it may wait longer than a request could. */
export const SPILL_TIMEOUT_MS = 2_000
const SPILL_ATTEMPTS = 2
/** How often an isolate asks whether another one has spilled. */
export const DRAIN_INTERVAL_MS = 30_000
const LOG_INTERVAL_MS = 60_000

/** What is used of a Queue binding. Bodies are the events' JSON, sent as text. */
export interface QueueBinding {
  sendBatch(
    messages: readonly { readonly body: string; readonly contentType: 'text' }[],
  ): Promise<unknown>
}

export interface AuditQueueOptions {
  readonly queue: QueueBinding
  /** Without one, what the queue does not take is lost, and counted. */
  readonly spill?: AuditSpill
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** UUIDv7. */
  readonly newId?: () => string
  readonly sleep?: (ms: number) => Promise<void>
  /** Takes a line for an operator, at most one a minute; default `console.warn`. */
  readonly warn?: (line: string) => void
  /** Where events are counted. */
  readonly tally?: AuditTally
  /** Default {@link QUEUE_TIMEOUT_MS}. */
  readonly queueTimeoutMs?: number
}

/** A transport that knows how its queue is. */
export interface AuditQueue extends AuditTransport {
  /** False for some seconds after a batch that the queue did not take. */
  takesEvents(): boolean
}

/**
 * An {@link AuditTransport} for one isolate. A batch takes at most about 10 s: two attempts at
 * the queue, then two at the spill. After a batch that went through, events that are kept in the spill are
 * sent on, a batch at a time, and removed only then: twice is possible, lost is not. That goes for the
 * event by which the spill tells what it has lost, too. What neither took is counted here, and the
 * count is sent as an `audit_lost` event once the queue works again, or handed to the spill with the
 * next batch; events that were kept, but whose answer was lost at each attempt, count as lost too.
 */
export function createAuditQueue({
  queue,
  spill,
  now = Date.now,
  newId = v7,
  sleep = sleepFor,
  warn = (line) => console.warn(line),
  tally = newAuditTally(),
  queueTimeoutMs = QUEUE_TIMEOUT_MS,
}: AuditQueueOptions): AuditQueue {
  let unreported = 0
  let queueShunnedUntilMs = 0
  let drainAtMs: number | undefined
  let logAtMs = 0

  async function enqueue(events: readonly string[]): Promise<boolean> {
    const messages = events.map((body) => ({ body, contentType: 'text' as const }))
    for (let attempt = 1; attempt <= QUEUE_ATTEMPTS; attempt += 1) {
      try {
        await withDeadline(queue.sendBatch(messages), queueTimeoutMs)
        return true
      } catch {
        if (attempt < QUEUE_ATTEMPTS) await sleep(RETRY_DELAY_MS)
      }
    }
    queueShunnedUntilMs = now() + QUEUE_COOL_DOWN_MS
    return false
  }

  /** How many events its bound has cut off; undefined where the spill did not take these. */
  async function spillOver(events: readonly string[], lost: number): Promise<number | undefined> {
    // The same for both attempts: one whose answer was lost has kept them all the same.
    const id = newId()
    for (let attempt = 1; spill !== undefined && attempt <= SPILL_ATTEMPTS; attempt += 1) {
      try {
        return await withDeadline(spill.keep(id, events, lost), SPILL_TIMEOUT_MS)
      } catch {
        if (attempt < SPILL_ATTEMPTS) await sleep(RETRY_DELAY_MS)
      }
    }
    return undefined
  }

  async function keep(events: readonly string[]) {
    const carried = unreported
    unreported = 0
    const cut = await spillOver(events, carried)
    if (cut === undefined) {
      unreported += carried + events.length
      tally.lost += events.length
    } else {
      tally.spilled += events.length
      tally.lost += cut
      drainAtMs = 0
    }
    if (now() < logAtMs) return
    logAtMs = now() + LOG_INTERVAL_MS
    warn(`audit: the queue takes no events; ${tally.lost} lost so far, the others are kept`)
  }

  async function drain() {
    drainAtMs ??= now() + DRAIN_INTERVAL_MS
    if (spill === undefined || now() < drainAtMs) return
    // At once, so that no other request of this isolate drains as well.
    drainAtMs = now() + DRAIN_INTERVAL_MS
    const kept = await withDeadline(spill.peek(MAX_BATCH_MESSAGES, lostText), SPILL_TIMEOUT_MS)
    // In front, so that it is never what finds no room.
    const told = kept.lostEvent === undefined ? [] : [kept.lostEvent]
    const batch = oneBatchOf([...told, ...kept.events])
    if (batch.length === 0 || !(await enqueue(batch))) return
    const events = batch.slice(told.length)
    tally.sent += events.length
    await withDeadline(spill.forget({ ...kept, events }), SPILL_TIMEOUT_MS)
    drainAtMs = 0
  }

  const lostText = (lost: number) => serialiseEvent(lostEvent(lost, newId(), now()))

  async function reportLost() {
    if (unreported === 0) return
    const lost = unreported
    unreported = 0
    if (!(await enqueue([lostText(lost)]))) unreported += lost
  }

  return {
    async send(events, lost) {
      unreported += lost
      tally.lost += lost
      if (now() < queueShunnedUntilMs || !(await enqueue(events))) return keep(events)
      tally.sent += events.length
      // A spill out of reach keeps what it has: there is nothing to save, and a next time.
      await drain().catch(() => {})
      await reportLost()
    },
    takesEvents: () => now() >= queueShunnedUntilMs,
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
