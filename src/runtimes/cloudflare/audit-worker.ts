/**
 * The audit Worker: the consumer of the audit trail over Cloudflare Queues, D1 and R2. Each event is
 * stored exactly once, although the queue may repeat and reorder messages. The Worker also consumes
 * the dead letter queue.
 */

import type { ExportBucket } from '../../audit/r2/chain-export.ts'
import { d1ConsumerDatabase } from '../../audit/sql/d1/consumer-database.ts'
import type { AuditDatabase } from '../../audit/sql/d1/database.ts'
import type { DeadLetter } from '../../audit/sql/dead-letters.ts'
import { MIGRATIONS } from '../../audit/sql/migrations.generated.ts'
import { type AuditConsumer, createAuditConsumer, type Stored } from '../audit/consumer.ts'

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
/** D1 permits an invocation 50 queries on the free plan, and 1,000 on the others. Each statement may count. */
const MAX_STATEMENTS = 50

/**
 * Acknowledges the messages when `work` is done, except those that it returns as poison. Those that it returns as rest come
 * back at once. If `work` rejects, schedules a retry for each message. Returns the poison.
 */
async function settle(
  messages: readonly AuditMessage[],
  work: () => Promise<Stored<AuditMessage>>,
): Promise<readonly AuditMessage[]> {
  try {
    const { poison, rest } = await work()
    const refused = new Set([...poison, ...rest])
    for (const message of messages) if (!refused.has(message)) message.ack()
    for (const message of rest) message.retry({ delaySeconds: 0 })
    return poison
  } catch {
    console.error(`audit: the database failed; ${messages.length} messages are retried`)
    for (const message of messages) {
      const delaySeconds = FIRST_RETRY_SECONDS * RETRY_FACTOR ** (message.attempts - 1)
      message.retry({ delaySeconds: Math.min(delaySeconds, MAX_RETRY_SECONDS) })
    }
    return []
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
  /** An isolate has one environment. */
  const consumers = new WeakMap<AuditEnv, AuditConsumer>()

  function consumerOf(env: AuditEnv): AuditConsumer {
    const { AUDIT_DB, AUDIT_EXPORT, RETENTION_DAYS, AUDIT_SIGNING_KEYS } = env
    const known = consumers.get(env)
    if (known !== undefined) return known
    const consumer = createAuditConsumer({
      db: d1ConsumerDatabase(AUDIT_DB),
      migrations: MIGRATIONS,
      bucket: AUDIT_EXPORT,
      retentionDays: RETENTION_DAYS,
      signingKeys: AUDIT_SIGNING_KEYS,
      maxStatements: MAX_STATEMENTS,
    })
    consumers.set(env, consumer)
    return consumer
  }

  return {
    async queue({ queue, messages }, env) {
      const consumer = consumerOf(env)
      const poison = await settle(messages, () => consumer.store(messages))
      if (!queue.endsWith(DEAD_LETTERS_SUFFIX)) {
        // The queue delivers it again, and then to the dead letter queue.
        for (const message of poison) message.retry()
        return
      }
      await settle(poison, async () => {
        await consumer.bury(poison)
        return { poison: [], rest: [] }
      })
    },

    async scheduled({ cron, scheduledTime }, env) {
      const consumer = consumerOf(env)
      await (cron === SEALING_CRON ? consumer.seal() : consumer.maintain(scheduledTime))
    },
  }
}
