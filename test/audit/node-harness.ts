/** The audit trail of a process on Node, in this process: a stream of Redis, a database and a directory. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { ChainPage } from '../../cli/verify.ts'
import { chainQuerySchema } from '../../src/audit/log.ts'
import { createStreamQueue, createStreamReader } from '../../src/audit/redis/stream.ts'
import { createChainLog } from '../../src/audit/sql/chain-log.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { createAuditConsumer } from '../../src/runtimes/audit/consumer.ts'
import { consumeAuditStream } from '../../src/runtimes/node/audit/consumer.ts'
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { sha256Now } from '../../src/runtimes/node/audit/digest.ts'
import { directoryBucket } from '../../src/runtimes/node/audit/directory.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { connectResp } from '../../src/runtimes/node/redis/resp.ts'
import { startPostgres } from '../harness/postgres.ts'
import type { AuditHarnessOptions, AuditStores } from './harness.ts'
import { prepare } from './prepared.ts'

/** The last column that a migration adds. */
export const NEWEST_COLUMN = 'SELECT change_id FROM audit_erasures LIMIT 1'

export const startNodeAudit = (options: AuditHarnessOptions): Promise<AuditStores> =>
  startTrail((folder) => `sqlite:${join(folder, 'audit.db')}`, options)

/** The same with a PostgreSQL server of its own. */
export async function startPostgresAudit(options: AuditHarnessOptions): Promise<AuditStores> {
  const server = await startPostgres()
  const url = await server.database('audit')
  const stores = await startTrail(() => url, options)
  return {
    ...stores,
    async close() {
      await stores.close()
      await server.close()
    },
  }
}

/** Starts the trail over the database at an `AUDIT_DATABASE`, which may be in the given folder. */
export async function startTrail(
  addressIn: (folder: string) => string,
  { redis, auditSigningKeys }: AuditHarnessOptions,
): Promise<AuditStores> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-audit-'))
  const exported = join(folder, 'export')
  const database = await openDatabase(addressIn(folder))
  const db = consumerDatabase(database)
  const bucket = directoryBucket(exported)
  const consumer = createAuditConsumer({
    db,
    migrations: database.migrations,
    bucket,
    signingKeys: auditSigningKeys,
    digest: sha256Now,
  })
  const resp = connectResp({ url: redis.redisUrl, timeoutMs: 20_000 })
  const connection = resp.connect({ timeoutMs: 20_000 })
  const queue = createStreamQueue(connection)
  const stopping = new AbortController()
  const stream = createStreamReader(connection, 'test')
  const consumed = consumeAuditStream(stream, consumer, stopping.signal)
  return {
    db,
    bucket: {
      ...bucket,
      async list() {
        const files = await readdir(exported, { recursive: true, withFileTypes: true })
        const names = files
          .filter((file) => file.isFile() && !file.name.startsWith('.'))
          .map((file) => relative(exported, join(file.parentPath, file.name)))
        return { objects: names.sort().map((key) => ({ key })) }
      },
      async delete(names) {
        for (const name of names) await rm(join(exported, name))
      },
    },
    async enqueue(_, bodies) {
      const messages = bodies.map((body) => ({
        body: typeof body === 'string' ? body : JSON.stringify(body),
        contentType: 'text' as const,
      }))
      for (let from = 0; from < messages.length; from += 100)
        await queue.sendBatch(messages.slice(from, from + 100))
    },
    async chainPage(after) {
      const query = chainQuerySchema.parse({ after: `${after}` })
      return (await createChainLog(db).read(query)) as ChainPage
    },
    migrate: async () =>
      void (await withSchema(db, database.migrations, () => prepare(db, NEWEST_COLUMN).all())),
    runCron: (cron = '17 3 * * *') =>
      cron === '* * * * *' ? consumer.seal() : consumer.maintain(Date.now()),
    async close() {
      stopping.abort()
      await consumed
      resp.close()
      await database.close()
      await rm(folder, { recursive: true })
    },
  }
}
