/**
 * The audit Worker: writes the events of the queue into D1, each once, whatever the queue repeats
 * or reorders. Also reads the dead letter queue, and deletes what is older than its retention.
 */
import { type AuditEvent, auditEventSchema } from '../src/audit/event.ts'
import { insertAuditEvents } from '../src/stores/d1/audit-events.ts'
import { keepDeadLetters } from '../src/stores/d1/dead-letters.ts'
import { deleteBefore } from '../src/stores/d1/retention.ts'
import { type Schema, withSchema } from '../src/stores/d1/schema.ts'
import tables from './migrations/0001_audit_events.sql'
import columns from './migrations/0002_audit_change.sql'

export interface AuditEnv {
  readonly AUDIT_DB: D1Database
  /** Whole days that events are kept; default 90. */
  readonly RETENTION_DAYS?: string
}

const SCHEMA: Schema = {
  tables: { name: '0001_audit_events.sql', sql: tables },
  columns: { name: '0002_audit_change.sql', sql: columns },
}

/** How the dead letter queue of `audit.toml` ends; the same Worker consumes both. */
const DEAD_LETTERS_SUFFIX = '-dead-letters'
/** D1 is tried after 5, 15, 45, 135 and 405 s: about ten minutes before the dead letter queue. */
const FIRST_RETRY_SECONDS = 5
const RETRY_FACTOR = 3
const MAX_RETRY_SECONDS = 3_600
const DEFAULT_RETENTION_DAYS = 90
const DAY_MS = 86_400_000

interface Delivery {
  readonly message: Message
  readonly event: AuditEvent
}

/** The event in a message, or undefined: then it will never be one, however often it comes. */
function eventOf(body: unknown): AuditEvent | undefined {
  try {
    return auditEventSchema.safeParse(typeof body === 'string' ? JSON.parse(body) : body).data
  } catch {
    return undefined
  }
}

/** Acknowledges each message once `work` is done; while D1 fails, asks for each of them later. */
async function settle(messages: readonly Message[], work: Promise<void>) {
  try {
    await work
    for (const message of messages) message.ack()
  } catch {
    console.error(`audit: D1 failed; ${messages.length} messages are retried`)
    for (const message of messages) {
      const delaySeconds = FIRST_RETRY_SECONDS * RETRY_FACTOR ** (message.attempts - 1)
      message.retry({ delaySeconds: Math.min(delaySeconds, MAX_RETRY_SECONDS) })
    }
  }
}

export default {
  async queue(batch, { AUDIT_DB: db }) {
    const deliveries: Delivery[] = []
    const poison: Message[] = []
    for (const message of batch.messages) {
      const event = eventOf(message.body)
      if (event === undefined) poison.push(message)
      else deliveries.push({ message, event })
    }
    await settle(
      deliveries.map(({ message }) => message),
      withSchema(db, SCHEMA, () =>
        insertAuditEvents(
          db,
          deliveries.map(({ event }) => event),
        ),
      ),
    )
    if (!batch.queue.endsWith(DEAD_LETTERS_SUFFIX)) {
      for (const message of poison) message.retry()
      return
    }
    const letters = poison.map(({ id, timestamp, body }) => ({
      messageId: id,
      receivedMs: timestamp.getTime(),
      body,
    }))
    await settle(
      poison,
      withSchema(db, SCHEMA, () => keepDeadLetters(db, letters)),
    )
  },

  async scheduled({ scheduledTime }, { AUDIT_DB: db, RETENTION_DAYS }) {
    const days = Number(RETENTION_DAYS ?? DEFAULT_RETENTION_DAYS)
    if (!Number.isInteger(days) || days < 1)
      throw new Error(`RETENTION_DAYS must be a whole number of days, at least 1`)
    await withSchema(db, SCHEMA, () => deleteBefore(db, scheduledTime - days * DAY_MS))
  },
} satisfies ExportedHandler<AuditEnv>
