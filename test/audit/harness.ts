/** The stores of the audit trail: those of Cloudflare in real workerd, and those of Node. */
import { fileURLToPath } from 'node:url'
import { describe } from 'vitest'
import type { ChainPage } from '../../cli/verify.ts'
import type { ExportBucket } from '../../src/audit/r2/chain-export.ts'
import { d1ConsumerDatabase } from '../../src/audit/sql/d1/consumer-database.ts'
import type { ConsumerDatabase } from '../../src/audit/sql/database.ts'
import { hasPostgres } from '../harness/postgres.ts'
import type { TestRedis } from '../harness/redis.ts'
import { createD1Client } from './d1-client.ts'
import { startD1Audit } from './d1-harness.ts'
import { startNodeAudit, startPostgresAudit } from './node-harness.ts'

const COMPATIBILITY_DATE = '2026-11-17'
const DATABASE = {
  binding: 'AUDIT_DB',
  database_name: 'portcullis-audit',
  database_id: '00000000-0000-0000-0000-000000000000',
}
/** A batch may mix first and later deliveries, and fails for the first ones: no message may be dropped for that. */
const FAILING = { max_batch_size: 100, max_batch_timeout: 1, max_retries: 100 }

/** An audit trail with its consumer. */
export interface AuditStores {
  readonly db: ConsumerDatabase
  /** The bucket of the export. */
  readonly bucket: ExportBucket & {
    list(): Promise<{ readonly objects: readonly { readonly key: string }[] }>
    delete(names: string[]): Promise<void>
  }
  /** Puts messages directly into the queue. */
  enqueue(queue: 'audit', bodies: readonly unknown[]): Promise<void>
  /** Returns a page of the chain after row `after`. */
  chainPage(after: number): Promise<ChainPage>
  /** Applies the migrations, as a deployment does. */
  migrate(): Promise<void>
  /** Runs a cron trigger. Default: the daily one. */
  runCron(cron?: string): Promise<void>
  close(): Promise<void>
}

/** A producer, and the audit Worker of `audit.toml`, with their real queues and D1. */
export interface AuditHarness extends AuditStores {
  readonly url: URL
  readonly bucket: R2Bucket
  enqueue(queue: 'audit' | 'crash' | 'outage', bodies: readonly unknown[]): Promise<void>
}

export interface AuditHarnessOptions {
  readonly originUrl: string
  /** The REST endpoint of Redis, where the producer stores events that its queue refuses. */
  readonly redis: TestRedis
  /** A private JWK Set that signs checkpoints. */
  readonly auditSigningKeys?: string
}

export async function startAuditHarness({
  originUrl,
  redis,
  auditSigningKeys,
}: AuditHarnessOptions): Promise<AuditHarness> {
  // Loading it takes longer than starting the other stores.
  const { createTestHarness } = await import('wrangler')
  const harness = createTestHarness({
    root: fileURLToPath(new URL('../..', import.meta.url).href),
    workers: [
      {
        config: {
          name: 'producer',
          main: 'test/audit/workers/producer.ts',
          compatibility_date: COMPATIBILITY_DATE,
          d1_databases: [DATABASE],
          vars: { ORIGIN_URL: originUrl, REDIS_URL: redis.url, REDIS_TOKEN: redis.token },
          queues: {
            producers: [
              { binding: 'AUDIT_QUEUE', queue: 'portcullis-audit' },
              { binding: 'CRASH_QUEUE', queue: 'crash' },
              { binding: 'OUTAGE_QUEUE', queue: 'outage' },
            ],
          },
        },
      },
      {
        configPath: 'workers/audit.toml',
        ...(auditSigningKeys && { secrets: { AUDIT_SIGNING_KEYS: auditSigningKeys } }),
      },
      {
        config: {
          name: 'failing-consumer',
          main: 'test/audit/workers/failing-consumer.ts',
          compatibility_date: COMPATIBILITY_DATE,
          d1_databases: [DATABASE],
          queues: {
            consumers: [
              { queue: 'crash', ...FAILING },
              { queue: 'outage', ...FAILING },
            ],
          },
        },
      },
    ],
  })
  const { url } = await harness.listen()
  const worker = harness.getWorker<{ AUDIT_DB: D1Database; AUDIT_EXPORT: R2Bucket }>(
    'portcullis-audit',
  )
  const { AUDIT_EXPORT: bucket } = await worker.getEnv()
  const db = d1ConsumerDatabase(createD1Client(new URL('/sql', url)))
  return {
    url,
    db,
    bucket,
    async enqueue(queue, bodies) {
      const response = await fetch(new URL(`/raw/${queue}`, url), {
        method: 'POST',
        body: JSON.stringify(bodies),
      })
      if (response.status !== 202) throw new Error(`the producer answered ${response.status}`)
    },
    async chainPage(after) {
      const response = await fetch(new URL(`/chain?after=${after}`, url))
      return (await response.json()) as ChainPage
    },
    migrate: () => worker.applyD1Migrations('AUDIT_DB'),
    async runCron(cron = '17 3 * * *') {
      await worker.scheduled({ cron })
    },
    close: () => harness.close(),
  }
}

const STORES: readonly {
  readonly name: string
  readonly start: (options: AuditHarnessOptions) => Promise<AuditStores>
  readonly isMissing?: boolean
}[] = [
  // The fastest one is the first.
  { name: 'on SQLite and a directory', start: startNodeAudit },
  { name: 'on D1 and R2', start: startD1Audit },
  { name: 'on PostgreSQL and a directory', start: startPostgresAudit, isMissing: !hasPostgres },
]

/** The place of a store in the list. */
export interface StorePlace {
  /** One of them: an experiment about rows that were read, whatever the store, is repeated most often there. */
  readonly isFirst: boolean
  readonly isD1: boolean
}

/** Runs a suite of the audit trail on all stores. Skips those that this machine does not have. */
export function describeStores(
  suite: (start: (typeof STORES)[number]['start'], place: StorePlace) => void,
): void {
  for (const [index, { name, start, isMissing = false }] of STORES.entries())
    describe.skipIf(isMissing)(name, () =>
      suite(start, { isFirst: index === 0, isD1: start === startD1Audit }),
    )
}
