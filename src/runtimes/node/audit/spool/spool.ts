/** The spool in its thread: stores events on the disk while Redis fails, and sends them when it works. */

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '../../../../audit/batch.ts'
import { lostEvent } from '../../../../audit/event.ts'
import type { QueueBinding } from '../../../../audit/queue/audit-queue.ts'
import { OVERFLOW_TTL_SECONDS } from '../../../../audit/redis/overflow.ts'
import { serializeEvent } from '../../../../audit/truncate.ts'
import { isUntil } from '../../../../isolate/period.ts'
import { recordId } from '../../../../isolate/random-ids.ts'
import { openSpoolFile, type SpoolFile } from './file.ts'

/** How often the spool is synced, and checked for events, which another process may have left. */
const SEND_INTERVAL_MS = 1_000
/** After the file could not be opened. */
const REOPEN_MS = 1_000
const LOG_INTERVAL_MS = 60_000
/** An erasure covers events that arrive within 8 days. */
const MAX_AGE_MS = OVERFLOW_TTL_SECONDS * 1_000

/** A queue with a connection of its own. */
export interface SpoolTarget {
  readonly queue: QueueBinding
  close(): void
}

export interface SpoolOptions {
  readonly directory: string
  readonly maxBytes: number
  /** Connects to the queue that spooled events are sent to. */
  readonly connect: () => SpoolTarget
  readonly now?: () => number
}

interface Waiting {
  readonly events: readonly string[]
  resolve(): void
  reject(error: unknown): void
}

/**
 * Opens the spool. If the directory is not writable, that is logged, and `append` rejects until it is.
 * Of several processes with the directory, one sends at a time. Events are sent in the order of the
 * spool, and removed after the queue has accepted them. So an event may be sent twice, with the same
 * id, but is not lost. Events of more than 7 days are removed and reported as lost.
 */
export function openSpool({ directory, maxBytes, connect, now = () => Date.now() }: SpoolOptions) {
  const stopping = new AbortController()
  let file: SpoolFile | undefined
  let reopenAtMs = 0
  let lastError: unknown
  let logAtMs = 0
  let waiting: Waiting[] = []
  let sending: Promise<void> | undefined
  /** Events up to this one were sent, and may be in the file only because the disk is full. */
  let sentSeq = 0

  function opened(): SpoolFile {
    if (file !== undefined) return file
    if (isUntil(reopenAtMs, REOPEN_MS, now())) throw lastError
    try {
      file = openSpoolFile(directory, maxBytes)
      return file
    } catch (error) {
      reopenAtMs = now() + REOPEN_MS
      lastError = error
      complain(error)
      throw error
    }
  }

  function complain(error: unknown): void {
    if (now() < logAtMs) return
    logAtMs = now() + LOG_INTERVAL_MS
    console.error(
      `audit: the spool ${directory} stores no events (${reasonOf(error)}). While Redis fails, events ` +
        'wait in memory, 8 MiB at most. Make the directory writable, free space, raise ' +
        'AUDIT_SPOOL_MAX_MIB, or set AUDIT_SPOOL=off',
    )
  }

  async function store(): Promise<void> {
    await nextTurn()
    const calls = waiting
    waiting = []
    const events = calls.flatMap((call) => call.events)
    try {
      opened().append(events, now())
      for (const { resolve } of calls) resolve()
    } catch (error) {
      complain(error)
      for (const { reject } of calls) reject(error)
    }
  }

  async function sendAll(spool: SpoolFile): Promise<void> {
    if (spool.read(1, 0).events.length === 0) return
    const release = spool.lock()
    if (release === undefined) return
    const target = connect()
    try {
      spool.remove(sentSeq)
      replaceExpired(spool)
      let count = 0
      for (;;) {
        const { events, lastSeq } = spool.read(MAX_BATCH_MESSAGES, MAX_BATCH_BYTES)
        if (events.length === 0) break
        await target.queue.sendBatch(events.map((body) => ({ body, contentType: 'text' as const })))
        sentSeq = lastSeq
        spool.remove(sentSeq)
        count += events.length
      }
      spool.shrink()
      console.info(`audit: sent ${count} events of the spool ${directory} to Redis`)
    } finally {
      target.close()
      release()
    }
  }

  function replaceExpired(spool: SpoolFile): void {
    const report = (lost: number) => serializeEvent(lostEvent(lost, recordId(), now()))
    const lost = spool.expire(now() - MAX_AGE_MS, report)
    if (lost > 0)
      console.error(`audit: ${lost} events of the spool ${directory} are lost: older than 7 days`)
  }

  /** Redis or the disk may fail. A later attempt does what is left. */
  async function attempt(work: (spool: SpoolFile) => void | Promise<void>): Promise<void> {
    try {
      await work(opened())
    } catch {}
  }

  async function sendUntilStopped(): Promise<void> {
    while (!stopping.signal.aborted) {
      await attempt((spool) => spool.sync())
      await attempt(sendAll)
      await sleep(SEND_INTERVAL_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  return {
    /**
     * Stores events; calls of one turn of the event loop share a transaction. Resolves when the events
     * survive the end of the process. A second later they survive the end of the machine. Rejects if the
     * spool is full or does not work; then none is stored.
     */
    append: (events: readonly string[]): Promise<void> =>
      new Promise((resolve, reject) => {
        waiting.push({ events, resolve, reject })
        if (waiting.length === 1) store()
      }),
    /** Sends what the spool contains, now and every second, until `close`. */
    start(): void {
      sending ??= sendUntilStopped()
    },
    /** Tries once more to send what the spool contains, and closes the file. The rest stays. */
    async close(): Promise<void> {
      stopping.abort()
      await sending
      if (sending !== undefined) await attempt(sendAll)
      file?.close()
    },
  }
}

/** Returns the text of an error of the file system or of SQLite. Both contain no event. */
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')
