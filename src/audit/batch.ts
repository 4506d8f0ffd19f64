/**
 * The policy of isolate-wide batches: who adds, who sends, who takes over. No I/O, no clock.
 *
 * A promise of one request must not be awaited by another on Workers, so what requests share here
 * is data: arrays of text. Each call tells the request that made it what it now has to do.
 */
import { utf8Length } from './truncate.ts'

/** How long the request that opens a batch keeps it open for others. */
export const BATCH_OPEN_MS = 50
/** Past this age nobody can be keeping a batch open: its opener's context has died. */
export const BATCH_LEASE_MS = 250
/** Past this time since a batch was taken, whoever was sending it has died. */
export const SENDING_LEASE_MS = 20_000
/** What one `sendBatch` of Cloudflare Queues takes. */
export const MAX_BATCH_MESSAGES = 100
/** `sendBatch` takes 256 KB, its own metadata (about 100 bytes a message) included. */
export const MAX_BATCH_BYTES = 240_000
const MESSAGE_OVERHEAD_BYTES = 100
/** What an isolate (128 MB) may hold that is not sent yet. More is counted as lost. */
export const MAX_PENDING_BYTES = 8_388_608

export interface Batch {
  readonly messages: string[]
  bytes: number
  /** When it was opened; once it is taken, when it was taken. */
  sinceMs: number
}

/** What the request that has just added a message must do, in its own `waitUntil`. */
export interface Duty {
  /** Send this now; it is taken already. */
  readonly send?: Batch
  /** Wait {@link BATCH_OPEN_MS}, then send this if `take` still gives it. */
  readonly hold?: Batch
}

/** Most requests add to a batch that somebody else sends. */
export const NO_DUTY: Duty = {}

export interface Batches {
  add(message: string, nowMs: number): Duty
  /** Hands the open batch over for sending; false where another request was first. */
  take(batch: Batch, nowMs: number): boolean
  /** A batch that was taken so long ago that its sender must be dead; it is taken anew. */
  overdue(nowMs: number): Batch | undefined
  /** The batch has arrived, or has been counted as lost. */
  settle(batch: Batch): void
  /** Counts a message as lost that is not even to be added. */
  lose(): void
  /** How many messages were lost since the last call. */
  takeLost(): number
}

/** An empty set of batches: one an isolate. */
export function createBatches(): Batches {
  let open: Batch | undefined
  const taken = new Set<Batch>()
  let pendingBytes = 0
  let lost = 0

  function close(batch: Batch, nowMs: number) {
    open = undefined
    batch.sinceMs = nowMs
    taken.add(batch)
  }

  return {
    add(message, nowMs) {
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
      const full = current.messages.length >= MAX_BATCH_MESSAGES
      if (!full && nowMs - current.sinceMs < BATCH_LEASE_MS) return NO_DUTY
      close(current, nowMs)
      return { send: current }
    },
    take(batch, nowMs) {
      if (open !== batch) return false
      close(batch, nowMs)
      return true
    },
    overdue(nowMs) {
      // In the order of taking: the first is the oldest.
      const [oldest] = taken
      if (oldest === undefined || nowMs - oldest.sinceMs < SENDING_LEASE_MS) return undefined
      taken.delete(oldest)
      oldest.sinceMs = nowMs
      taken.add(oldest)
      return oldest
    },
    settle(batch) {
      if (taken.delete(batch)) pendingBytes -= batch.bytes
    },
    lose() {
      lost += 1
    },
    takeLost() {
      const count = lost
      lost = 0
      return count
    },
  }
}
