/** The audit trail of Cloudflare in real workerd: the audit Worker with its queue, D1 and R2, in one process. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { parse } from 'smol-toml'
import * as z from 'zod/mini'
import type { ChainPage } from '../../cli/verify.ts'
import { d1ConsumerDatabase } from '../../src/audit/sql/d1/consumer-database.ts'
import { MIGRATIONS } from '../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { ROOT } from '../harness/process.ts'
import { bundle } from '../origin/workerd.ts'
import { createD1Client } from './d1-client.ts'
import type { AuditHarnessOptions, AuditStores } from './harness.ts'
import { NEWEST_COLUMN } from './node-harness.ts'
import { prepare } from './prepared.ts'

/** The queue that the gateway sends events to. */
const QUEUE = 'portcullis-audit'
const bindings = z.array(z.object({ binding: z.string() }))
/** The settings that wrangler passes to Miniflare, which does not simulate `max_concurrency`. */
const CONFIG = z
  .object({
    compatibility_date: z.string(),
    compatibility_flags: z.array(z.string()),
    vars: z.record(z.string(), z.string()),
    d1_databases: bindings,
    r2_buckets: bindings,
    queues: z.object({
      consumers: z.array(
        z.object({
          queue: z.string(),
          max_batch_size: z.number(),
          max_batch_timeout: z.number(),
          max_retries: z.number(),
          dead_letter_queue: z.optional(z.string()),
        }),
      ),
    }),
  })
  .parse(parse(readFileSync(join(ROOT, 'workers/audit.toml'), 'utf8')))

const queueConsumers = Object.fromEntries(
  CONFIG.queues.consumers.map(({ queue, dead_letter_queue, ...consumer }) => [
    queue,
    {
      maxBatchSize: consumer.max_batch_size,
      maxBatchTimeout: consumer.max_batch_timeout,
      maxRetries: consumer.max_retries,
      ...(dead_letter_queue !== undefined && { deadLetterQueue: dead_letter_queue }),
    },
  ]),
)

export async function startD1Audit({
  auditSigningKeys,
}: Pick<AuditHarnessOptions, 'auditSigningKeys'> = {}): Promise<
  AuditStores & { readonly url: URL }
> {
  const contents = new TextDecoder().decode(await bundle('test/audit/workers/trail.ts'))
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...{ host: '127.0.0.1', port: 0, cf: false },
      modules: [{ type: 'ESModule', path: 'worker.js', contents }],
      compatibilityDate: CONFIG.compatibility_date,
      compatibilityFlags: CONFIG.compatibility_flags,
      bindings: {
        ...CONFIG.vars,
        ...(auditSigningKeys !== undefined && { AUDIT_SIGNING_KEYS: auditSigningKeys }),
      },
      d1Databases: CONFIG.d1_databases.map(({ binding }) => binding),
      r2Buckets: CONFIG.r2_buckets.map(({ binding }) => binding),
      queueProducers: { AUDIT_QUEUE: QUEUE },
      queueConsumers,
    }),
  )
  const url = await miniflare.ready
  const db = d1ConsumerDatabase(createD1Client(new URL('/sql', url)))
  async function send(path: string, init: RequestInit): Promise<void> {
    const { ok, status } = await fetch(new URL(path, url), init)
    if (!ok) throw new Error(`the Worker answered ${status}`)
  }
  return {
    url,
    db,
    bucket: (await miniflare.getR2Bucket('AUDIT_EXPORT')) as unknown as R2Bucket,
    enqueue: (_: 'audit', bodies: readonly unknown[]) =>
      send('/raw/audit', { method: 'POST', body: JSON.stringify(bodies) }),
    async chainPage(after: number) {
      return (await (await fetch(new URL(`/chain?after=${after}`, url))).json()) as ChainPage
    },
    migrate: async () =>
      void (await withSchema(db, MIGRATIONS, () => prepare(db, NEWEST_COLUMN).all())),
    runCron: (cron = '17 3 * * *') => send(`/cron?${new URLSearchParams({ cron })}`, {}),
    close: () => miniflare.dispose(),
  }
}
