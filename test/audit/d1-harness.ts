/** The audit trail of Cloudflare in real workerd: the audit Worker with its queue, D1 and R2, in one process. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
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

const QUEUE = 'portcullis-audit'
const DEAD_LETTERS = `${QUEUE}-dead-letters`
/** Of `audit.toml`, as `delivery.slow.test.ts` runs it with wrangler. */
const BATCHES = { maxBatchSize: 100, maxBatchTimeout: 1 }
const [, COMPATIBILITY_DATE = ''] =
  /^compatibility_date = "(.+)"$/m.exec(readFileSync(join(ROOT, 'workers/audit.toml'), 'utf8')) ??
  []

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
      compatibilityDate: COMPATIBILITY_DATE,
      compatibilityFlags: ['no_nodejs_compat', 'no_nodejs_compat_v2'],
      bindings: auditSigningKeys === undefined ? {} : { AUDIT_SIGNING_KEYS: auditSigningKeys },
      d1Databases: ['AUDIT_DB'],
      r2Buckets: ['AUDIT_EXPORT'],
      queueProducers: { AUDIT_QUEUE: QUEUE },
      queueConsumers: {
        [QUEUE]: { ...BATCHES, maxRetries: 5, deadLetterQueue: DEAD_LETTERS },
        [DEAD_LETTERS]: { ...BATCHES, maxRetries: 100 },
      },
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
