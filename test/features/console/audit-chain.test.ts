/** The page of the audit chain calls a trail verified only if its begin, checkpoints and end are those of the events. */
import { v7 } from 'uuid'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { chainBlocks, intoBlocks } from '../../../src/audit/blocks/block.ts'
import type { ChainPart } from '../../../src/audit/chain-export.ts'
import { type PartOfChain, verifyPart } from '../../../src/features/console/chain-verdict.ts'
import { anEvent } from '../../audit/event.ts'
import { prepare } from '../../audit/prepared.ts'
import { startConsole } from './gateway.ts'

let gateway: Awaited<ReturnType<typeof startConsole>> | undefined
const started = async () => {
  gateway ??= await startConsole()
  return gateway
}
let cookie = ''
afterAll(() => gateway?.close())

const TABLES = ['audit_blocks', 'audit_heads', 'audit_checkpoints']
/** The rows of each table before a test. */
const saved = new Map<string, Record<string, unknown>[]>()

const subjects = ['ada', 'bea', 'cleo']
const eventsOf = (names: readonly string[]) =>
  names.map((subject, at) =>
    anEvent({
      ...{
        id: v7(),
        requestId: v7(),
        time: new Date(Date.now() - (3 - at) * 120_000).toISOString(),
      },
      actor: { ...anEvent().actor, subject },
    }),
  )

beforeEach(async () => {
  const { db, store, cookieOf } = await started()
  if (saved.size === 0) {
    cookie = await cookieOf({ roles: ['operator'] })
    for (const event of eventsOf(subjects)) await store([event])
    await run(
      'INSERT INTO audit_checkpoints (partition, seq, kind, hash, time_ms, signature) ' +
        "SELECT '0', seq, 'sealed', hash, 1, NULL FROM audit_heads",
    )
    for (const table of TABLES) {
      const { results } = await prepare(db, `SELECT * FROM ${table}`).all<Record<string, unknown>>()
      saved.set(table, results)
    }
  }
  for (const [table, rows] of saved) {
    await run(`DELETE FROM ${table}`)
    for (const row of rows) {
      const names = Object.keys(row)
      const marks = names.map(() => '?').join(', ')
      const values = Object.values(row) as (string | number | null)[]
      await prepare(db, `INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`)
        .bind(...values)
        .run()
    }
  }
})

const run = async (sql: string) => prepare((await started()).db, sql).run()

async function page(query = ''): Promise<string> {
  const { visit } = await started()
  const { text } = await visit(cookie, `/-/console/audit${query}`)
  return text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
}

test('an intact trail is verified, and its later part with the hash of the event before', async () => {
  expect(await page()).toContain(' Verified Every hash matches')
  const hash = saved.get('audit_blocks')?.[0]?.hash
  expect(await page(`?after=1&hash=${hash}`)).toContain(' Verified Every hash matches')
  expect(await page('?after=1')).toContain('Verified in part The predecessor of the first event')
})

test.each([
  ['the newest events are deleted', ['DELETE FROM audit_blocks WHERE first_seq > 1']],
  ['all events are deleted', ['DELETE FROM audit_blocks']],
  [
    'all events and the recorded end are deleted, and a checkpoint is left',
    ['DELETE FROM audit_blocks', 'DELETE FROM audit_heads'],
  ],
  ['the oldest events are deleted', ['DELETE FROM audit_blocks WHERE first_seq = 1']],
  ['the recorded end is deleted', ['DELETE FROM audit_heads']],
  ['the recorded end is another one', ["UPDATE audit_heads SET hash = 'other'"]],
  ['a checkpoint has another hash', ["UPDATE audit_checkpoints SET hash = 'other'"]],
])('a trail is not verified: %s', async (_what, changes) => {
  for (const sql of changes) await run(sql)
  expect(await page()).toContain(' Not verified ')
})

/** A chain of three blocks after a place, as somebody with the database writes it. */
async function chainAfter(place: { seq: number; hash: string }, names = subjects) {
  const { blocks, head } = await chainBlocks(place, intoBlocks(eventsOf(names)))
  const whole: PartOfChain = {
    ...{ rows: [], blocks, checkpoints: [], head },
    after: 0,
    hash: undefined,
  }
  return whole
}
const checkpoint = (kind: string, { seq, hash }: { seq: number; hash: string }) =>
  ({
    partition: '0',
    seq,
    kind,
    hash,
    time_ms: 1,
    signature: null,
  }) satisfies ChainPart['checkpoints'][number]
const START = { seq: 0, hash: 'A'.repeat(43) }

test('a rewritten chain is found by its begin, and by a checkpoint of before', async () => {
  const old = await chainAfter(START)
  const sealed = [checkpoint('sealed', old.head ?? START)]
  expect((await verifyPart({ ...old, checkpoints: sealed })).result).toBe('yes')
  const other = await chainAfter({ seq: 0, hash: 'whatever' })
  expect(await verifyPart(other)).toMatchObject({ result: 'no' })
  const framed = await chainAfter(START, ['framed', ...subjects.slice(1)])
  expect(await verifyPart({ ...framed, checkpoints: sealed })).toEqual({
    result: 'no',
    text: 'The checkpoint 3 has another hash than its event.',
  })
})

test('a trail whose oldest events retention deleted begins with the last of them', async () => {
  const last = { seq: 7, hash: 'B'.repeat(43) }
  const rest = await chainAfter(last)
  const checkpoints = [checkpoint('pruned', last)]
  expect(await verifyPart({ ...rest, checkpoints })).toMatchObject({ result: 'yes' })
  expect(await verifyPart(rest)).toMatchObject({ result: 'no' })
  const other = [checkpoint('pruned', { ...last, hash: 'other' })]
  expect(await verifyPart({ ...rest, checkpoints: other })).toMatchObject({ result: 'no' })
  const none = { ...rest, blocks: [], head: last, checkpoints }
  expect(await verifyPart(none)).toMatchObject({ result: 'yes' })
  expect(await verifyPart({ ...none, head: rest.head })).toMatchObject({ result: 'no' })
})

test('rows of earlier versions are not called verified', async () => {
  const { blocks, head, ...rest } = await chainAfter({ seq: 1, hash: 'row' })
  const rows = [{ seq: 1, previous_hash: START.hash, hash: 'row' }]
  expect(await verifyPart({ ...rest, blocks, head, rows })).toMatchObject({ result: 'part' })
  const changed = [{ seq: 1, previous_hash: 'other', hash: 'row' }]
  expect(await verifyPart({ ...rest, blocks, head, rows: changed })).toMatchObject({ result: 'no' })
})

test('an empty trail is verified', async () => {
  const empty = { rows: [], blocks: [], checkpoints: [], head: null, after: 0, hash: undefined }
  expect((await verifyPart(empty)).result).toBe('yes')
})
