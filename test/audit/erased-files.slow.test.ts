/** What an erasure leaves in the files of SQLite. */
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createErasureOrders } from '../../src/audit/sql/erasure-orders.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { insertEarlierRows } from './earlier-rows.ts'
import { anEvent } from './event.ts'
import type { AuditStores } from './harness.ts'
import { startTrail } from './node-harness.ts'
import { prepare } from './prepared.ts'

const ISSUER = 'https://issuer.example'
const ALICE = 'alice-whose-name-is-not-in-any-other-event'
/** Of a compressed block, so many bytes that no other block has them. */
const SAMPLE_BYTES = 24

let folder: string
let redis: TestRedis
let stores: AuditStores
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-erased-'))
  redis = await startTestRedis()
  await redis.direct.flushall()
  stores = await startTrail(() => `sqlite:${join(folder, 'audit.db')}`, {
    originUrl: 'http://127.0.0.1:9',
    redis,
  })
  await stores.migrate()
})
afterEach(async () => {
  await stores.close()
  await redis.close()
  await rm(folder, { recursive: true })
})

const by = (subject: string) =>
  anEvent({
    actor: { ...anEvent().actor, issuer: ISSUER, subject },
    requestId: crypto.randomUUID(),
  })

/** Returns the compressed events of the first block. */
async function storedBlock(): Promise<Buffer> {
  const sql = 'SELECT events FROM audit_blocks ORDER BY first_seq LIMIT 1'
  const row = await prepare(stores.db, sql).first<{ events: Uint8Array }>()
  return Buffer.from(row?.events ?? [])
}

async function files(): Promise<Buffer> {
  const names = (await readdir(folder)).filter((name) => name.startsWith('audit.db'))
  return Buffer.concat(names.map((name) => readFileSync(join(folder, name))))
}

test('no page and no write-ahead log has the rows and blocks of an erased person [S66]', async () => {
  const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
  const some = (count: number) => Array.from({ length: count }, (_, at) => by(`bob-${at}`))
  await insertEarlierRows(stores.db, [...some(40), by(ALICE), ...some(40)], options)
  await insertAuditEvents(stores.db, [...some(40), by(ALICE), ...some(40)], options)
  const block = await storedBlock()
  const parts = Array.from({ length: Math.floor(block.length / SAMPLE_BYTES) }, (_, at) =>
    block.subarray(at * SAMPLE_BYTES, (at + 1) * SAMPLE_BYTES),
  )
  const before = await files()
  expect(before.includes(ALICE)).toBe(true)
  // A part may lie on two pages of the file.
  const samples = parts.filter((part) => before.includes(part))
  expect(samples.length).toBeGreaterThan(parts.length * 0.8)

  const orders = createErasureOrders(stores.db, Date.now)
  const { id } = await orders.order({ issuer: ISSUER, subject: ALICE })
  await stores.runCron('* * * * *')
  expect(await orders.find(id)).toMatchObject({ state: 'done', rows: 2 })
  const after = await files()
  expect(after.includes(ALICE)).toBe(false)
  // What the new text of the block has in common with the old one belongs to other persons.
  const now = await storedBlock()
  const gone = samples.filter((sample) => !now.includes(sample))
  expect(gone.length).toBeGreaterThan(5)
  expect(gone.filter((sample) => after.includes(sample))).toEqual([])
})
