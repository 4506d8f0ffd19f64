/** Exports of each format of the chain, for verifiers. */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 } from 'uuid'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createErasureOrders } from '../../src/audit/sql/erasure-orders.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { createAuditConsumer } from '../../src/runtimes/audit/consumer.ts'
import { endRetention, exportDue } from '../../src/runtimes/audit/upkeep.ts'
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { sha256Now } from '../../src/runtimes/node/audit/digest.ts'
import { directoryBucket } from '../../src/runtimes/node/audit/directory.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { insertEarlierRows, toFirstFormat } from './earlier-rows.ts'
import { anEvent } from './event.ts'

const T0 = Date.parse('2026-11-20T12:00:00.000Z')
const HOUR_MS = 3_600_000
const EVENT_MS = 50
const ISSUER = 'https://issuer.example'
const ERASED = 'alice'
/** Characters that JSON escapes, and ones that it does not. */
const ODD = 'zoë "\\/\t\n\u0001\u007f\u2028😀 <>&'

interface Plan {
  /** Events in rows of the first format, in rows with commitments, and in blocks. */
  readonly first: number
  readonly rows: number
  readonly blocks: number
  readonly isErased?: boolean
  /** Retention has deleted the begin of the chain before the export was switched on. */
  readonly isPruned?: boolean
}

export const SAMPLES = {
  'first-format': { first: 30, rows: 0, blocks: 0 },
  'first-format-erased': { first: 30, rows: 0, blocks: 0, isErased: true },
  rows: { first: 0, rows: 60, blocks: 0 },
  'rows-erased': { first: 0, rows: 60, blocks: 0, isErased: true },
  blocks: { first: 0, rows: 0, blocks: 700 },
  'blocks-erased': { first: 0, rows: 0, blocks: 700, isErased: true },
  'every-format': { first: 30, rows: 1_200, blocks: 700 },
  'every-format-erased': { first: 30, rows: 1_200, blocks: 700, isErased: true },
  pruned: { first: 30, rows: 60, blocks: 700, isErased: true, isPruned: true },
} as const satisfies Readonly<Record<string, Plan>>

function eventAt(index: number): AuditEvent {
  const [subject = null] = [[ERASED, 'bob', ODD, 'carol'][index % 4]]
  return anEvent({
    id: v7(),
    requestId: v7(),
    time: new Date(T0 + index * EVENT_MS).toISOString(),
    actor: { ...anEvent().actor, issuer: ISSUER, subject },
    ...(index % 5 === 2 && { decision: 'deny', reason: 'rate_limited:standard', status: 429 }),
    // Changes by bob that name the erased person, and by the erased person.
    ...(index % 24 === 1 && { change: { action: 'client.create', target: ERASED } }),
    ...(index % 24 === 4 && { change: { action: 'ban.create', target: ODD } }),
    ...(index % 7 === 0 && {
      observed: ['banned'],
      grants: { roles: [ODD], scopes: [] },
    }),
  })
}
const some = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => eventAt(from + at))

/**
 * Writes a folder for each sample, in it the folder `audit` of an export, and `keys.json` beside them: the public keys of
 * the checkpoints.
 */
export async function writeSampleExports(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const jwk = generateSigningJwk('audit-1')
  const { d: _, ...publicJwk } = jwk as typeof jwk & { d?: string }
  await writeFile(join(folder, 'keys.json'), JSON.stringify({ keys: [publicJwk] }))
  for (const [name, plan] of Object.entries<Plan>(SAMPLES)) {
    const target = join(folder, name)
    await rm(target, { recursive: true, force: true })
    await write(target, plan, JSON.stringify({ keys: [jwk] }))
  }
}

async function write(folder: string, plan: Plan, signingKeys: string): Promise<void> {
  const { first, rows, blocks, isErased = false, isPruned = false } = plan
  const bucket = directoryBucket(folder)
  const database = await openDatabase('sqlite::memory:')
  const db = consumerDatabase(database)
  const seal = createCheckpointSealer(JSON.parse(signingKeys).keys)
  const { migrations } = database
  const options = { seal, nowMs: T0, digest: sha256Now }
  await withSchema(db, migrations, async () => {
    if (first > 0) await insertEarlierRows(db, some(0, first), options)
    else await insertAuditEvents(db, [], options)
  })
  if (first > 0) await toFirstFormat(db)
  for (let from = first; from < first + rows; from += 200)
    await insertEarlierRows(db, some(from, Math.min(200, first + rows - from)), options)
  const consumer = createAuditConsumer({
    ...{ db, migrations, signingKeys, digest: sha256Now },
    bucket: isPruned ? undefined : bucket,
    retentionDays: '36500',
  })
  const store = (from: number, count: number) =>
    insertAuditEvents(db, some(from, count), { ...options, nowMs: T0 + 1_000 })
  for (let from = 0; from < blocks; from += 350) await store(first + rows + from, 350)

  const laterMs = Date.now() + HOUR_MS
  async function exportAll() {
    const upkeep = { db, bucket, seal, nowMs: laterMs, digest: sha256Now }
    await insertAuditEvents(db, [], upkeep)
    for (let object = 0; object < 3; object += 1) await exportDue(upkeep, true)
  }
  if (isErased) {
    const orders = createErasureOrders(db, () => T0 + HOUR_MS)
    const { id } = await orders.order({ issuer: ISSUER, subject: ERASED })
    while ((await orders.find(id))?.state !== 'done') await consumer.seal()
  }
  if (isPruned) {
    const upkeep = { db, bucket: undefined, seal, nowMs: laterMs }
    await endRetention(upkeep, T0 + (first + rows + blocks / 2) * EVENT_MS)
  }
  await exportAll()
  await database.close()
}
