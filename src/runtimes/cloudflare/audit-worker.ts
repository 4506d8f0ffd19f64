/**
 * The audit Worker: writes the events of the queue to a hash chain in D1, and signs checkpoints of
 * the chain. Each event is stored exactly once, although the queue may repeat and reorder messages.
 * The Worker also consumes the dead letter queue, exports the chain to R2, performs erasures, and
 * deletes rows after their retention period.
 */

import { parseSigningKeys } from '../../access/tokens/signing-keys.ts'
import { type CheckpointSealer, createCheckpointSealer } from '../../audit/chain.ts'
import { insertAuditEvents } from '../../audit/d1/audit-chain.ts'
import type { AuditDatabase } from '../../audit/d1/database.ts'
import { type DeadLetter, keepDeadLetters } from '../../audit/d1/dead-letters.ts'
import { MIGRATIONS } from '../../audit/d1/migrations.generated.ts'
import { DEFAULT_RETENTION_DAYS } from '../../audit/d1/retention.ts'
import { withSchema } from '../../audit/d1/schema.ts'
import { type AuditEvent, auditEventSchema } from '../../audit/event.ts'
import type { ExportBucket } from '../../audit/r2/chain-export.ts'
import { Misconfigured } from '../../errors.ts'
import { carryOutErasures, endRetention, exportDue, type Upkeep } from './upkeep.ts'

export interface AuditEnv {
  readonly AUDIT_DB: AuditDatabase
  /** Bucket that the chain is exported to. Default: no export. */
  readonly AUDIT_EXPORT?: ExportBucket
  /** Days that events are kept, as a whole number. Default 90. */
  readonly RETENTION_DAYS?: string
  /**
   * Private JWK Set that signs checkpoints, in the format of `SIGNING_KEYS` of the gateway.
   * Default: checkpoints are not signed.
   */
  readonly AUDIT_SIGNING_KEYS?: string
}

/** A message of a queue: the part that is used. */
export interface AuditMessage extends DeadLetter {
  /** Deliveries of the message, this one included. */
  readonly attempts: number
  ack(): void
  retry(options?: { delaySeconds?: number }): void
}

export interface AuditBatch {
  /** Name of the queue. */
  readonly queue: string
  readonly messages: readonly AuditMessage[]
}

export interface AuditSchedule {
  readonly cron: string
  /** Milliseconds since the epoch. */
  readonly scheduledTime: number
}

export interface AuditWorker {
  queue(batch: AuditBatch, env: AuditEnv): Promise<void>
  scheduled(schedule: AuditSchedule, env: AuditEnv): Promise<void>
}

/** From `audit.toml`. This schedule writes checkpoints. Any other schedule also ends retention. */
const SEALING_CRON = '* * * * *'

/** Suffix of the dead letter queue's name in `audit.toml`. This Worker consumes both queues. */
const DEAD_LETTERS_SUFFIX = '-dead-letters'
/** D1 is retried after 5, 15, 45, 135 and 405 s: about ten minutes until the dead letter queue. */
const FIRST_RETRY_SECONDS = 5
const RETRY_FACTOR = 3
const MAX_RETRY_SECONDS = 3_600
const DAY_MS = 86_400_000
/**
 * Minimum time between two upkeep runs after a batch, so that upkeep does not depend on the cron
 * trigger.
 */
const UPKEEP_INTERVAL_MS = 10_000
/** Action of the audit event that orders an erasure. */
const ERASURE_ORDER = 'audit.erase'

interface Delivery {
  readonly message: AuditMessage
  readonly event: AuditEvent
}

const sealers = new Map<string | undefined, CheckpointSealer>()

/**
 * Returns the sealer for the environment's keys, parsed once. Invalid keys leave checkpoints
 * unsigned instead of blocking events.
 */
function sealerOf({ AUDIT_SIGNING_KEYS: text }: AuditEnv): CheckpointSealer {
  const known = sealers.get(text)
  if (known !== undefined) return known
  const unsigned = createCheckpointSealer([])
  let signed = unsigned
  try {
    if (text !== undefined) signed = createCheckpointSealer(parseSigningKeys(JSON.parse(text)))
  } catch {
    console.error('audit: AUDIT_SIGNING_KEYS is not a private JWK Set; checkpoints are not signed')
  }
  const sealer: CheckpointSealer = (...statement) =>
    signed(...statement).catch(() => {
      console.error('audit: a key of AUDIT_SIGNING_KEYS cannot sign')
      return unsigned(...statement)
    })
  sealers.set(text, sealer)
  return sealer
}

const upkeepOf = (env: AuditEnv): Upkeep => ({
  db: env.AUDIT_DB,
  bucket: env.AUDIT_EXPORT,
  seal: sealerOf(env),
  nowMs: Date.now(),
})

/**
 * Runs erasures and exports. `isDaily` also exports rows that are not due yet. A failure is logged,
 * and the next run retries it.
 */
async function lookAfter(upkeep: Upkeep, isDaily = false) {
  for (const [what, work] of [
    ['an erasure', () => carryOutErasures(upkeep)],
    ['the export', () => exportDue(upkeep, isDaily)],
  ] as const) {
    await withSchema(upkeep.db, MIGRATIONS, work).catch((error: unknown) =>
      console.error(`audit: ${what} failed (${nameOf(error)}), and is tried again`),
    )
  }
}

/** Returns text that is safe to log. Error messages of D1 and R2 may contain any data. */
function nameOf(error: unknown): string {
  if (error instanceof Misconfigured) return error.message
  return error instanceof Error ? error.name : typeof error
}

/**
 * Returns the event of a message, or undefined if the message is not an event. A retry cannot
 * change that.
 */
function eventOf(body: unknown): AuditEvent | undefined {
  try {
    return auditEventSchema.safeParse(typeof body === 'string' ? JSON.parse(body) : body).data
  } catch {
    return undefined
  }
}

/**
 * Acknowledges the messages when `work` is done. If `work` rejects, schedules a retry for each of
 * them.
 */
async function settle(messages: readonly AuditMessage[], work: Promise<void>) {
  try {
    await work
    for (const message of messages) message.ack()
  } catch {
    console.error(`audit: the database failed; ${messages.length} messages are retried`)
    for (const message of messages) {
      const delaySeconds = FIRST_RETRY_SECONDS * RETRY_FACTOR ** (message.attempts - 1)
      message.retry({ delaySeconds: Math.min(delaySeconds, MAX_RETRY_SECONDS) })
    }
  }
}

/**
 * Returns the audit Worker, for the default export of its module. Its bindings are those of
 * {@link AuditEnv}; it creates missing tables itself.
 *
 * @example
 * ```ts
 * import { auditWorker } from 'portcullis/cloudflare'
 *
 * export default auditWorker()
 * ```
 */
export function auditWorker(): AuditWorker {
  let lookedAfterMs = 0
  return {
    async queue(batch, env) {
      const { AUDIT_DB: db } = env
      const deliveries: Delivery[] = []
      const poison: AuditMessage[] = []
      for (const message of batch.messages) {
        const event = eventOf(message.body)
        if (event === undefined) poison.push(message)
        else deliveries.push({ message, event })
      }
      await settle(
        deliveries.map(({ message }) => message),
        withSchema(db, MIGRATIONS, () =>
          insertAuditEvents(
            db,
            deliveries.map(({ event }) => event),
            { seal: sealerOf(env), nowMs: Date.now() },
          ),
        ),
      )
      if (!batch.queue.endsWith(DEAD_LETTERS_SUFFIX)) {
        for (const message of poison) message.retry()
        const isOrdered = deliveries.some(({ event }) => event.change?.action === ERASURE_ORDER)
        const upkeep = upkeepOf(env)
        if (!isOrdered && upkeep.nowMs - lookedAfterMs < UPKEEP_INTERVAL_MS) return
        lookedAfterMs = upkeep.nowMs
        await lookAfter(upkeep)
        return
      }
      await settle(
        poison,
        withSchema(db, MIGRATIONS, () => keepDeadLetters(db, poison)),
      )
    },

    async scheduled({ cron, scheduledTime }, env) {
      const { AUDIT_DB: db, RETENTION_DAYS } = env
      const upkeep = upkeepOf(env)
      await withSchema(db, MIGRATIONS, () => insertAuditEvents(db, [], upkeep))
      const isDaily = cron !== SEALING_CRON
      lookedAfterMs = upkeep.nowMs
      await lookAfter(upkeep, isDaily)
      if (!isDaily) return
      const days = Number(RETENTION_DAYS ?? DEFAULT_RETENTION_DAYS)
      if (!Number.isInteger(days) || days < 1)
        throw new Error(`RETENTION_DAYS must be a whole number of days, at least 1`)
      await endRetention(upkeep, scheduledTime - days * DAY_MS)
    },
  }
}
