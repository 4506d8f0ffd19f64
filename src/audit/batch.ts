/**
 * Decides which request of an isolate sends a batch, or takes over. Pure: no I/O and no clock.
 *
 * On Workers a request must not await a promise of another request. So requests share only data,
 * and each call returns what its request must do next.
 */
import { isWithin } from '../isolate/period.ts'
import { utf8Length } from './truncate.ts'

/** How long the request that opens a batch keeps it open for other requests. */
export const BATCH_OPEN_MS = 50
/** If an open batch is older, the platform has ended the request that opened it. */
const BATCH_LEASE_MS = 250
/** If a batch is being sent for longer, the platform has ended the request that sends it. */
const SENDING_LEASE_MS = 20_000
/** Limit of `sendBatch` of Cloudflare Queues. */
export const MAX_BATCH_MESSAGES = 100
/** `sendBatch` accepts 256 KB, including its own metadata (about 100 bytes for each message). */
export const MAX_BATCH_BYTES = 240_000
const MESSAGE_OVERHEAD_BYTES = 100
/** For unsent messages in an isolate of 128 MB. Further messages are counted as lost. */
export const MAX_PENDING_BYTES = 8_388_608

export interface Batch {
  readonly messages: string[]
  bytes: number
  /** The time at which the batch was opened, or taken for sending. */
  sinceMs: number
}

/** The duty of the request that added a message. It fulfils the duty in its own `waitUntil`. */
export interface Duty {
  /** Send this batch now; it is already taken. */
  readonly send?: Batch
  /** Wait {@link BATCH_OPEN_MS}, then send this batch if `take` returns true. */
  readonly hold?: Batch
}

/** The most frequent duty: another request sends the batch. */
export const NO_DUTY: Duty = {}

export function createBatches() {
  let open: Batch | undefined
  const taken = new Set<Batch>()
  let pendingBytes = 0
  let lost = 0

  function close(batch: Batch, nowMs: number): void {
    open = undefined
    batch.sinceMs = nowMs
    taken.add(batch)
  }

  return {
    add(message: string, nowMs: number): Duty {
      const bytes = utf8Length(message) + MESSAGE_OVERHEAD_BYTES
      if (pendingBytes + bytes > MAX_PENDING_BYTES) {
        lost += 1
        return NO_DUTY
      }
      pendingBytes += bytes
      const current = open
      if (current === undefined || current.bytes + bytes > MAX_BATCH_BYTES) {
        const opened: Batch = { messages: [message], bytes, sinceMs: nowMs }
        if (current !== undefined) close(current, nowMs)
        open = opened
        return current === undefined ? { hold: opened } : { send: current, hold: opened }
      }
      current.messages.push(message)
      current.bytes += bytes
      const isFull = current.messages.length >= MAX_BATCH_MESSAGES
      if (!isFull && isWithin(current.sinceMs, BATCH_LEASE_MS, nowMs)) return NO_DUTY
      close(current, nowMs)
      return { send: current }
    },
    /** Takes the open batch for sending. Returns false if another request took it first. */
    take(batch: Batch, nowMs: number): boolean {
      if (open !== batch) return false
      close(batch, nowMs)
      return true
    },
    /** Takes a batch with an expired sending lease. */
    overdue(nowMs: number): Batch | undefined {
      // The set is ordered by the time of taking: the first batch is the oldest.
      const [oldest] = taken
      if (oldest === undefined || isWithin(oldest.sinceMs, SENDING_LEASE_MS, nowMs))
        return undefined
      taken.delete(oldest)
      oldest.sinceMs = nowMs
      taken.add(oldest)
      return oldest
    },
    /** Removes a batch that was delivered or counted as lost. */
    settle(batch: Batch): void {
      if (taken.delete(batch)) pendingBytes -= batch.bytes
    },
    /** Counts a message as lost that is not added. */
    lose(): void {
      lost += 1
    },
    /** Returns the number of messages that were lost since the last call. */
    takeLost(): number {
      const count = lost
      lost = 0
      return count
    },
  }
}
