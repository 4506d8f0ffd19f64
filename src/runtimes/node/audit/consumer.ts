/** Consumes the stream of audit events, and does what the audit Worker does on its schedules. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamEntry, StreamReader } from '../../../audit/redis/stream.ts'
import {
  type AuditEnv,
  type AuditMessage,
  type AuditWorker,
  auditWorker,
} from '../../cloudflare/audit-worker.ts'

/** A transaction for each; the chain is computed within about 50 ms. */
const MAX_ENTRIES = 100
/** How long events may wait for others, so that a transaction stores several of them. */
const POLL_MS = 250
/** Redis or the database has failed. */
const RETRY_MS = 5_000
const SEAL_INTERVAL_MS = 60_000
/** Ends retention, and exports what is not due. */
const UPKEEP_INTERVAL_MS = 3_600_000
const SEALING_CRON = '* * * * *'
const UPKEEP_CRON = '0 * * * *'
const QUEUE = 'audit'
const DEAD_LETTERS = 'audit-dead-letters'

/**
 * Consumes the stream until `signal` aborts, and then until the stream is empty or something fails.
 * Never rejects. An entry leaves the stream only after its event is in the chain, or, if it is no
 * event, in the table of dead letters. While the database fails, entries stay in the stream.
 */
export async function consumeAuditStream(
  stream: StreamReader,
  env: AuditEnv,
  signal: AbortSignal,
): Promise<void> {
  const worker = auditWorker()
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {})

  async function consumeUntilAborted() {
    const store = () => attempt('the consumer', () => storePage(worker, stream, env))
    while (!signal.aborted) {
      const count = await store()
      if (count === undefined) await pause(RETRY_MS)
      else if (count < MAX_ENTRIES) await pause(POLL_MS)
    }
    while (await store());
  }

  async function runOnSchedule(cron: string, intervalMs: number) {
    for (;;) {
      await pause(intervalMs)
      if (signal.aborted) return
      await attempt('the upkeep', () => worker.scheduled({ cron, scheduledTime: Date.now() }, env))
    }
  }

  await Promise.all([
    consumeUntilAborted(),
    runOnSchedule(SEALING_CRON, SEAL_INTERVAL_MS),
    runOnSchedule(UPKEEP_CRON, UPKEEP_INTERVAL_MS),
  ])
}

/** Returns undefined after a failure, which is logged without data. */
async function attempt<Value>(
  what: string,
  work: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await work()
  } catch (error) {
    console.error(`audit: ${what} failed (${error instanceof Error ? error.name : typeof error})`)
    return undefined
  }
}

/** Stores at most 100 entries, and returns their number; undefined if an entry is not stored. */
async function storePage(
  worker: AuditWorker,
  stream: StreamReader,
  env: AuditEnv,
): Promise<number | undefined> {
  const entries = await stream.read(MAX_ENTRIES)
  if (entries.length === 0) return 0
  const events = deliveryOf(entries)
  await worker.queue({ queue: QUEUE, messages: events.messages }, env)
  const poison = deliveryOf(entries.filter(({ id }) => events.refused.has(id)))
  if (poison.messages.length > 0)
    await worker.queue({ queue: DEAD_LETTERS, messages: poison.messages }, env)
  const stored = [...events.stored, ...poison.stored]
  await stream.remove(stored)
  return stored.length === entries.length ? stored.length : undefined
}

/** Messages for the audit Worker, and what it does with them. */
interface Delivery {
  readonly messages: readonly AuditMessage[]
  readonly stored: ReadonlySet<string>
  /** The Worker has asked for a retry without a delay: a message that is no event. */
  readonly refused: ReadonlySet<string>
}

function deliveryOf(entries: readonly StreamEntry[]): Delivery {
  const stored = new Set<string>()
  const refused = new Set<string>()
  const messages = entries.map(({ id, body }) => ({
    id,
    body,
    timestamp: new Date(Number.parseInt(id, 10)),
    // The stream counts no attempts: an event is never a dead letter because the database failed.
    attempts: 1,
    ack: () => void stored.add(id),
    retry({ delaySeconds = 0 } = {}) {
      if (delaySeconds === 0) refused.add(id)
    },
  }))
  return { messages, stored, refused }
}
