/** Tries the change from rows to blocks on a database of an earlier version. */
import { join } from 'node:path'
import { v7 } from 'uuid'
import { type ChainPage, type Verdict, verifyChain } from '../../cli/verify.ts'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { partOf } from '../../src/audit/chain-export.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditQuerySchema, chainQuerySchema } from '../../src/audit/log.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { createChainLog } from '../../src/audit/sql/chain-log.ts'
import { createErasureOrders } from '../../src/audit/sql/erasure-orders.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { createAuditConsumer } from '../../src/runtimes/audit/consumer.ts'
import { endRetention, exportDue } from '../../src/runtimes/audit/upkeep.ts'
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { sha256Now } from '../../src/runtimes/node/audit/digest.ts'
import { directoryBucket } from '../../src/runtimes/node/audit/directory.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { insertEarlierRows } from './earlier-rows.ts'
import { anEvent } from './event.ts'
import { prepare } from './prepared.ts'

const T0 = Date.parse('2026-01-01T00:00:00.000Z')
const HOUR_MS = 3_600_000
const ISSUER = 'https://issuer.example'
const BATCH = 500
const CALLERS = 2_000
/** The subject with an event in each batch, who is erased. */
const PERSON = 'alice@home'
const FIRST_WITH_BLOCKS = '0012'

export interface Tried {
  /** Milliseconds of each step. */
  readonly ms: Readonly<Record<string, number>>
  /** Events found by subject and by request id, in the rows and in the blocks. */
  readonly found: Readonly<Record<string, number>>
  readonly verdicts: Readonly<Record<'migrated' | 'erased' | 'exported' | 'retained', Verdict>>
  /** Rows and events that the erasure has changed. */
  readonly erased: number
}

/**
 * Stores events as rows in the schema before blocks, and as many as `after` in blocks with this version. Then it
 * verifies, queries, erases a person, exports, verifies the export, and ends the retention of half of the rows.
 */
export async function tryMigration(
  folder: string,
  before: number,
  after: number,
  address = `sqlite:${join(folder, 'audit.db')}`,
  onStep: (step: string, ms: number) => void = () => {},
): Promise<Tried> {
  const database = await openDatabase(address)
  const db = consumerDatabase(database)
  const directory = join(folder, 'export')
  const bucket = directoryBucket(directory)
  const seal = createCheckpointSealer([])
  const options = { seal, nowMs: T0, digest: sha256Now }
  const ms: Record<string, number> = {}
  const found: Record<string, number> = {}

  async function timed<Value>(step: string, work: () => Promise<Value>): Promise<Value> {
    const begin = performance.now()
    const value = await work()
    const took = Math.round(performance.now() - begin)
    ms[step] = took
    onStep(step, took)
    return value
  }

  const earlier = database.migrations.filter(({ name }) => name < FIRST_WITH_BLOCKS)
  await timed('store rows', async () => {
    for (let from = 0; from < before; from += BATCH)
      await withSchema(db, earlier, () => insertEarlierRows(db, batch(from, before), options))
  })

  const consumer = createAuditConsumer({
    ...{ db, migrations: database.migrations, digest: sha256Now },
  })
  const total = before + after
  const store = (from: number) =>
    consumer.store(
      batch(from, total).map((event) => ({
        ...{ id: event.id, timestamp: new Date(T0), body: JSON.stringify(event) },
      })),
    )
  await timed('migrate, with the first batch', () => store(before))
  await timed('store the other batches', async () => {
    for (let from = before + BATCH; from < total; from += BATCH) await store(from)
  })

  const read = async (seq: number) =>
    (await createChainLog(db).read(chainQuerySchema.parse({ after: `${seq}` }))) as ChainPage
  const verify = () => verifyChain(read, undefined)
  const migrated = await timed('verify', verify)

  const log = createAuditLog(db)
  async function count(name: string, query: Readonly<Record<string, string>>) {
    const parsed = auditQuerySchema.parse({ limit: '100', ...query })
    const { events } = await timed(`query ${name}`, () => log.query(parsed))
    found[name] = events.length
  }
  const middle = Math.floor(before / 2)
  await count('request in rows', { requestId: eventAt(middle).requestId })
  await count('request in blocks', { requestId: eventAt(total - 3).requestId })
  await count('subject', { subject: PERSON })
  await count('newest', {})
  await count('rows only', { until: new Date(T0 + 1_000 * before - 1).toISOString() })
  await count('nobody', { subject: 'nobody' })

  const orders = createErasureOrders(db, () => T0 + 1_000 * total)
  const { id } = await orders.order({ issuer: ISSUER, subject: PERSON })
  await timed('erase', async () => {
    while ((await orders.find(id))?.state !== 'done') await consumer.seal()
  })
  const erased = Number((await orders.find(id))?.rows)
  const afterErasure = await verify()

  const upkeep = { db, bucket, seal, nowMs: Date.now() + HOUR_MS, digest: sha256Now }
  // The events of the erasure are exported when a checkpoint covers them.
  await insertAuditEvents(db, [], upkeep)
  const newestExport = prepare(db, 'SELECT max(last_seq) AS seq FROM audit_exports')
  const exportedSeq = async () => (await newestExport.first<{ seq: number | null }>())?.seq
  await timed('export', async () => {
    let last: number | null | undefined
    do {
      last = await exportedSeq()
      await exportDue(upkeep, true)
    } while ((await exportedSeq()) !== last)
  })
  const { results: names } = await prepare(
    db,
    'SELECT name, first_seq, last_seq FROM audit_exports ORDER BY first_seq',
  ).all<{ name: string; first_seq: number; last_seq: number }>()
  let given = 0
  const exported = await timed('verify the export', () =>
    verifyChain(
      async () => {
        const text = await (await bucket.get(names[given]?.name ?? ''))?.text()
        const { rows, blocks, checkpoints } = partOf(text ?? '')
        given += 1
        const next = given < names.length ? { next: given } : {}
        return { rows, checkpoints, head: null, ...(blocks && { blocks }), ...next } as ChainPage
      },
      undefined,
      { from: 1, to: names.at(-1)?.last_seq ?? 0 },
    ),
  )

  await timed('end the retention of half of the rows', () =>
    endRetention(upkeep, T0 + 1_000 * middle),
  )
  const retained = await verify()
  await database.close()
  return { ms, found, verdicts: { migrated, erased: afterErasure, exported, retained }, erased }
}

/** Returns the events of a batch. One of them is of the person who is erased later. */
const batch = (from: number, end: number): AuditEvent[] =>
  Array.from({ length: Math.min(BATCH, end - from) }, (_, index) => eventAt(from + index))

/** Returns the event with this number, always the same. */
function eventAt(index: number): AuditEvent {
  const ms = T0 + 1_000 * index
  const random = Uint8Array.from({ length: 16 }, (_, at) => (index * 31 + at * 17) % 256)
  const subject = index % BATCH === 0 ? PERSON : `user-${index % CALLERS}`
  return anEvent({
    id: v7({ msecs: ms, seq: index, random }),
    requestId: v7({ msecs: ms - 40, seq: index, random }),
    time: new Date(ms).toISOString(),
    actor: { ...anEvent().actor, issuer: ISSUER, subject },
    address: `198.51.100.${index % 250}`,
    route: `/orders/${index % 40}`,
    ...(index % 33 === 0 && { decision: 'deny', reason: 'rate_limited:standard', status: 429 }),
  })
}
