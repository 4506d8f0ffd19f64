/** Consumes the stream of audit events, and runs the schedules of the consumer. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamReader } from '../../../audit/redis/stream.ts'
import type { AuditConsumer } from '../../audit/consumer.ts'

/** A transaction for each; the chain is computed within about 20 ms. */
const MAX_ENTRIES = 500
/** How long events may wait for others, so that a transaction stores several of them. */
const POLL_MS = 250
/** Redis or the database has failed. */
const RETRY_MS = 5_000
const SEAL_INTERVAL_MS = 60_000
/** Ends retention, and exports what is not due. */
const UPKEEP_INTERVAL_MS = 3_600_000

/**
 * Consumes the stream until `signal` aborts, and then until the stream is empty or something fails.
 * Never rejects. An entry leaves the stream only after its event is in the chain, or, if it is no
 * event, in the table of dead letters. While the database fails, entries stay in the stream.
 */
export async function consumeAuditStream(
  stream: StreamReader,
  consumer: AuditConsumer,
  signal: AbortSignal,
): Promise<void> {
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {})

  async function consumeUntilAborted() {
    const store = () => attempt('the consumer', () => storePage(consumer, stream))
    while (!signal.aborted) {
      const count = await store()
      if (count === undefined) await pause(RETRY_MS)
      else if (count < MAX_ENTRIES) await pause(POLL_MS)
    }
    while (await store());
  }

  async function repeat(work: () => Promise<void>, intervalMs: number) {
    for (;;) {
      await pause(intervalMs)
      if (signal.aborted) return
      await attempt('the upkeep', work)
    }
  }

  await Promise.all([
    consumeUntilAborted(),
    repeat(() => consumer.seal(), SEAL_INTERVAL_MS),
    repeat(() => consumer.maintain(Date.now()), UPKEEP_INTERVAL_MS),
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
    console.error(`audit: ${what} failed (${reasonOf(error)})`)
    return undefined
  }
}

/** Returns what SQLite calls the error, such as a full disk. Other messages may contain data: only the kind and the code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const { name, errstr, code } = error as Error & {
    readonly errstr?: string
    readonly code?: string
  }
  return errstr ?? (code === undefined ? name : `${name} ${code}`)
}

/** Stores a page of entries, and returns their number. Rejects if an entry is not stored. */
async function storePage(consumer: AuditConsumer, stream: StreamReader): Promise<number> {
  const entries = await stream.read(MAX_ENTRIES)
  if (entries.length === 0) return 0
  const messages = entries.map(({ id, body }) => ({
    id,
    body,
    timestamp: new Date(Number.parseInt(id, 10)),
  }))
  const { poison } = await consumer.store(messages)
  await consumer.bury(poison)
  await stream.remove(entries.map(({ id }) => id))
  return entries.length
}
