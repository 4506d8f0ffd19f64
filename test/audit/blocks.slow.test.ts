/** The chain in blocks, in rows of before, and over the seam between them, on every store. */
import { v7 } from 'uuid'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { publicKeysIn } from '../../cli/checkpoints.ts'
import { type ChainPage, verifyChain } from '../../cli/verify.ts'
import { STREAMS } from '../../src/audit/blocks/compression.ts'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { partOf } from '../../src/audit/chain-export.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditQuerySchema } from '../../src/audit/log.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { createErasureOrders } from '../../src/audit/sql/erasure-orders.ts'
import { createAuditUsage } from '../../src/audit/sql/usage.ts'
import { carryOutErasures, endRetention, exportDue } from '../../src/runtimes/audit/upkeep.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { IS_LONG } from '../harness/long.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { insertEarlierRows } from './earlier-rows.ts'
import { anEvent } from './event.ts'
import { type AuditStores, describeStores } from './harness.ts'
import { prepare, runAll } from './prepared.ts'

const T0 = Date.parse('2026-01-01T00:00:00.000Z')
const HOUR_MS = 3_600_000
const ISSUER = 'https://issuer.example'
const KEY = '01a1f920-fe19-7a05-8d2a-1dea6edacba3'
const keySet = JSON.stringify({ keys: [generateSigningJwk('audit-1')] })
const keys = publicKeysIn(keySet)
const seal = createCheckpointSealer(JSON.parse(keySet).keys)

const at = (index: number): AuditEvent => {
  const ms = T0 + index * 1_000
  const { key: _, ...withoutKey } = anEvent().actor
  const actor = { ...withoutKey, subject: `user-${index % 7}`, client: `client-${index % 5}` }
  return anEvent({
    id: v7({ msecs: ms, seq: index }),
    requestId: v7({ msecs: ms }),
    time: new Date(ms).toISOString(),
    actor: {
      ...actor,
      tenant: index % 4 === 0 ? null : `tenant-${index % 3}`,
      ...(index % 6 === 0 && { key: KEY }),
    },
    route: index % 11 === 0 ? null : `/orders/${index % 9}`,
    address: `192.0.2.${index % 13}`,
    ...(index % 10 === 0 && { decision: 'deny', reason: `rate_limited:limit-${index % 3}` }),
    ...(index % 10 === 0 && { status: 429 }),
    ...(index % 17 === 0 && { host: '*.example.com', origin: 'orders' }),
    ...(index % 19 === 0 && { observed: ['permission_missing:x:read', 'banned:subject'] }),
    ...(index % 23 === 0 && { call: { method: 'tools/call', name: 'search' } }),
    ...(index % 29 === 0 && { change: { action: 'ban.create', target: KEY } }),
    ...(index % 31 === 0 && { fields: { plan: 'gold' }, grants: { roles: ['r'], scopes: [] } }),
  })
}
const some = (count: number, from = 0) => Array.from({ length: count }, (_, n) => at(from + n))

const QUERIES: readonly Readonly<Record<string, string>>[] = [
  {},
  { subject: 'user-3' },
  { subject: 'nobody' },
  { client: 'client-2', decision: 'deny' },
  { tenant: 'tenant-1' },
  { address: '192.0.2.5' },
  { status: '429' },
  { reason: 'rate_limited' },
  { reason: 'rate_limited:limit-1' },
  { observed: 'permission_missing' },
  { observed: 'banned:subject' },
  { observed: 'permission_missing:y' },
  { tool: 'search' },
  { change: 'ban' },
  { change: 'ban.create' },
  { change: 'ban.delete' },
  { route: '/orders/4' },
  { host: '*.example.com' },
  { origin: 'orders' },
  { key: KEY },
  { since: new Date(T0 + 100_000).toISOString(), until: new Date(T0 + 200_000).toISOString() },
  { subject: 'user-1', since: new Date(T0 + 250_500).toISOString() },
]

const ofEachKind = new Map(QUERIES.map((query) => [Object.keys(query).join(), query]))

describeStores((start, { isFirst, isD1 }) => {
  /** For experiments with pages of the chain, whatever the store: each run has them on the first one. */
  const onFirst = isFirst || IS_LONG ? test : undefined
  /** For experiments with hundreds of blocks: D1 is an SQLite, whose file each run has. */
  const onEngines = !isD1 || IS_LONG ? test : undefined
  let redis: TestRedis
  let harness: AuditStores
  beforeAll(async () => {
    redis = await startTestRedis()
    harness = await start({ originUrl: 'http://127.0.0.1:9', redis, auditSigningKeys: keySet })
    await harness.migrate()
  })
  afterAll(async () => {
    await harness?.close()
    await redis?.close()
  })

  const sql = (text: string) => prepare(harness.db, text)
  const names = async () => (await harness.bucket.list()).objects.map(({ key }) => key)
  async function empty() {
    const tables = ['events', 'blocks', 'usage', 'heads', 'checkpoints', 'exports', 'erasures']
    await runAll(
      harness.db,
      tables.map((table) => sql(`DELETE FROM audit_${table}`)),
    )
    await harness.bucket.delete(await names())
  }
  beforeEach(empty)

  async function append(events: readonly AuditEvent[], format: 'rows' | 'blocks', nowMs = T0) {
    const insert = format === 'rows' ? insertEarlierRows : insertAuditEvents
    for (let from = 0; from === 0 || from < events.length; from += 100)
      await insert(harness.db, events.slice(from, from + 100), { seal, nowMs })
  }
  const page = (after: number) => harness.chainPage(after)
  const verify = () => verifyChain(page, keys)
  const withoutKeys = () => verifyChain(page, undefined)
  const upkeep = (nowMs: number) => ({
    ...{ db: harness.db, bucket: harness.bucket, seal, nowMs },
  })

  /** D1 has the SQL of the first store: each run sends a query of each kind to it. */
  const queries = isD1 && !IS_LONG ? [...ofEachKind.values()] : QUERIES
  /** The numbers of events in rows and in blocks that an export writes as three objects. */
  const [exportedRows, exportedInBlocks] = [700, 2_400]

  /** Each page of D1 is a request to a Worker. */
  const pageSize = isD1 && !IS_LONG ? 100 : 20
  async function all(query: Readonly<Record<string, string>>, limit = pageSize) {
    const found: AuditEvent[] = []
    const cursors = new Set<string>()
    let cursor: string | undefined
    do {
      const asked = { ...query, limit: `${limit}`, ...(cursor !== undefined && { cursor }) }
      const result = await createAuditLog(harness.db).query(auditQuerySchema.parse(asked))
      found.push(...result.events)
      cursor = result.cursor
      expect(cursors).not.toContain(cursor)
      if (cursor !== undefined) cursors.add(cursor)
    } while (cursor !== undefined)
    return found
  }
  async function everything(): Promise<string> {
    const { results } = await sql('SELECT events FROM audit_blocks').all<{ events: Uint8Array }>()
    const texts = await Promise.all(results.map(({ events }) => STREAMS.decompress(events)))
    const objects = await Promise.all(
      (await names()).map(async (name) => (await (await harness.bucket.get(name))?.text()) ?? ''),
    )
    return [...texts, ...objects].join('\n')
  }

  async function inTurn<Item, Result>(
    items: readonly Item[],
    run: (item: Item) => Promise<Result>,
  ) {
    const results: Result[] = []
    for (const item of items) results.push(await run(item))
    return results
  }

  describe('queries and usage', () => {
    test('have the same answers from rows, from blocks, and from both', async () => {
      const events = some(300)
      const period = (since: number, until: number) => ({
        sinceMs: T0 + since * 1_000,
        untilMs: T0 + until * 1_000,
      })
      async function answers() {
        const usage = createAuditUsage(harness.db)
        return {
          // One after the other: each has the deadline of a query.
          pages: await inTurn(queries, (query) => all(query)),
          requests: await inTurn([0, 77, 150, 299], (index) =>
            all({ requestId: events[index]?.requestId ?? '' }),
          ),
          days: [
            await usage.usageOf(KEY, period(0, 10_000)),
            await usage.usageOf(KEY, period(33, 178)),
            await usage.usageOf(KEY, period(150, 151)),
          ],
          routes: [
            await usage.routesOf([KEY], period(0, 10_000)),
            await usage.routesOf([KEY], period(33, 178)),
          ],
        }
      }
      await append(events, 'rows')
      const expected = await answers()
      expect(expected.pages[0]).toEqual(events.toReversed())
      expect(expected.requests.map(({ length }) => length)).toEqual([1, 1, 1, 1])
      await empty()
      if (!isD1 || IS_LONG) {
        await append(events, 'blocks')
        expect(await answers()).toEqual(expected)
        await empty()
      }
      await append(events.slice(0, 130), 'rows')
      await append(events.slice(130), 'blocks')
      expect(await answers()).toEqual(expected)
    })

    test('find events that arrived late, in the order of their times', async () => {
      const events = some(120)
      await append(events.slice(40), 'blocks')
      await append(events.slice(0, 40), 'blocks')
      expect(await all({})).toEqual(events.toReversed())
    })

    onFirst?.('read a bounded number of blocks: a page may be short and has a cursor', async () => {
      const by = (index: number, client: string) => {
        const event = at(index)
        return { ...event, actor: { ...event.actor, subject: client, client } }
      }
      for (let pair = 0; pair < 215; pair += 1) {
        const events = [by(2 * pair, 'one'), by(2 * pair + 1, 'two')]
        await insertAuditEvents(harness.db, events, { seal, nowMs: T0 })
      }
      const none = { subject: 'one', client: 'two' }
      const query = auditQuerySchema.parse(none)
      const first = await createAuditLog(harness.db).query(query)
      expect(first).toEqual({ events: [], cursor: expect.any(String) })
      expect(await all(none)).toEqual([])
      expect(await all({ subject: 'one' }, 200)).toHaveLength(215)
    })

    onEngines?.(
      'reach every event if more blocks than one page reads contain one millisecond',
      async () => {
        const lastMs = T0 + 1_000_000
        const late = (index: number): AuditEvent => ({
          ...at(index),
          id: v7({ msecs: lastMs, seq: index }),
          time: new Date(lastMs).toISOString(),
        })
        const early = some(215)
        const events = [...early, ...early.map((_, index) => late(index))]
        for (let index = 0; index < 215; index += 1) {
          const block = [events[index], events[215 + index]].flatMap((event) => event ?? [])
          await insertAuditEvents(harness.db, block, { seal, nowMs: T0 })
        }
        const newestFirst = events.toSorted((a, b) =>
          `${a.time} ${a.id}` < `${b.time} ${b.id}` ? 1 : -1,
        )
        expect(await all({}, 100)).toEqual(newestFirst)
        const until = new Date(T0 + 100_000).toISOString()
        expect(await all({ until }, 100)).toEqual(early.slice(0, 100).toReversed())
      },
    )
  })

  describe('the chain [S66]', () => {
    test('continues from rows to blocks and back, and stores each event once', async () => {
      const events = some(250)
      await append(events.slice(0, 100), 'rows')
      await append(events.slice(50, 170), 'blocks')
      await append(events.slice(170, 250), 'rows')
      await append(events, 'blocks')
      expect(await withoutKeys()).toMatchObject({ ok: true, events: 250, first: 1, last: 250 })
      expect((await all({})).toSorted((a, b) => (a.time < b.time ? -1 : 1))).toEqual(events)
    })

    onEngines?.('never forks: consumers append at once, with or without duplicates', async () => {
      const events = some(200)
      const consumer = async (own: readonly AuditEvent[]) => {
        for (let from = 0; from < own.length; from += 20)
          await vi.waitFor(() => append(own.slice(from, from + 20), 'blocks'), { timeout: 100_000 })
      }
      await Promise.all([consumer(events), consumer(events.slice(100)), consumer(some(60, 500))])
      expect(await withoutKeys()).toMatchObject({ ok: true, events: 260, last: 260 })
    })

    onEngines?.('is sealed, with the hash of the last block', async () => {
      await append(some(1_050), 'blocks')
      const verdict = await verify()
      expect(verdict).toMatchObject({ ok: true, checkpoints: 1, signed: 1, sealed: 1_000 })
    })

    const CHANGES: readonly {
      readonly name: string
      readonly change: (block: readonly string[]) => readonly string[]
    }[] = [
      {
        name: 'a changed public part',
        change: ([a = '', ...b]) => [a.replace('GET', 'PUT'), ...b],
      },
      {
        name: 'a changed personal part',
        change: ([a = '', ...b]) => [a.replace('user-', 'eve-'), ...b],
      },
      { name: 'a removed event', change: ([_, ...others]) => others },
      { name: 'a duplicated event', change: ([a = '', ...b]) => [a, a, ...b] },
      { name: 'a moved event', change: ([a = '', b = '', ...c]) => [b, a, ...c] },
      { name: 'a replaced event', change: ([a = '', _, ...c]) => [a, a, ...c] },
      {
        name: 'a secret erasure',
        change: ([a = '', ...b]) => {
          const [open = ''] = a.split('\t')
          const erased = JSON.stringify({ commitment: 'A'.repeat(43), erasure: 'x' })
          return [`${open}\t\t${erased}`, ...b]
        },
      },
    ]
    for (const { name, change } of CHANGES)
      onFirst?.(`reveals ${name} in a block`, async () => {
        await append(some(300), 'blocks')
        async function changed(after: number): Promise<ChainPage> {
          const one = await page(after)
          const blocks = one.blocks?.map((block) =>
            block.first_seq === 101 ? { ...block, lines: change(block.lines) } : block,
          )
          return { ...one, ...(blocks && { blocks }) }
        }
        const { ok, findings } = await verifyChain(changed, undefined)
        expect(ok).toBe(false)
        expect(findings).toMatchObject([{ kind: 'changed', seq: 101 }])
      })

    onEngines?.each([
      ['terms = ids', 'the filter'],
      ['min_ms = min_ms + 1', 'the begin of its time'],
      ['max_ms = max_ms - 1', 'the end of its time'],
      ['start_ms = start_ms + 1', 'when its requests began'],
      ['ids = terms', 'the ids of its events'],
    ])('reveals a block that queries do not find: %s', async (change) => {
      await append(some(300), 'blocks')
      await sql(`UPDATE audit_blocks SET ${change} WHERE first_seq = 101`).run()
      const { ok, findings } = await withoutKeys()
      expect(ok).toBe(false)
      expect(findings).toMatchObject([{ kind: 'search', seq: 101 }])
    })

    onEngines?.('reveals a changed, removed or added count of an API key', async () => {
      for (const change of [
        'UPDATE audit_usage SET requests = requests + 1 WHERE first_seq = 101',
        'DELETE FROM audit_usage WHERE first_seq = 101',
        'INSERT INTO audit_usage SELECT api_key, 150, min_ms, max_ms, day, decision, reason, method, ' +
          'route, host, requests FROM audit_usage WHERE first_seq = 1',
      ]) {
        await empty()
        await append(some(300), 'blocks')
        await sql(change).run()
        expect((await withoutKeys()).findings, change).toMatchObject([{ kind: 'search', seq: 101 }])
      }
    })

    onEngines?.(
      'reveals a removed block, a truncated tail, swapped blocks and a changed hash',
      async () => {
        await append(some(400), 'blocks')
        const kept = 'CREATE TABLE kept AS SELECT * FROM audit_blocks'
        await runAll(harness.db, [sql('DROP TABLE IF EXISTS kept'), sql(kept)])
        const [second, third] = [101, 201]
        const { results } = await sql('SELECT first_seq FROM audit_blocks ORDER BY first_seq').all<{
          first_seq: number
        }>()
        expect(results.map(({ first_seq }) => first_seq)).toContain(second)
        const cases: readonly (readonly [string, object])[] = [
          [
            `DELETE FROM audit_blocks WHERE first_seq = ${second}`,
            { kind: 'missing', seq: second },
          ],
          ['DELETE FROM audit_blocks WHERE first_seq >= 301', { kind: 'missing', seq: 301 }],
          [
            `UPDATE audit_blocks SET hash = 'x' WHERE first_seq = ${second}`,
            { kind: 'changed', seq: second },
          ],
          [
            `UPDATE audit_blocks SET events = (SELECT events FROM kept WHERE first_seq = ${third}) ` +
              `WHERE first_seq = ${second}`,
            { kind: 'changed', seq: second },
          ],
        ]
        for (const [statement, finding] of cases) {
          await sql(statement).run()
          const { ok, findings } = await withoutKeys()
          expect(ok, statement).toBe(false)
          expect(findings, statement).toContainEqual(expect.objectContaining(finding))
          await runAll(harness.db, [
            sql('DELETE FROM audit_blocks'),
            sql('INSERT INTO audit_blocks SELECT * FROM kept'),
          ])
        }
        expect(await withoutKeys()).toMatchObject({ ok: true, events: 400 })
        await sql('DROP TABLE kept').run()
      },
    )
  })

  describe('an erasure [S66]', () => {
    const alice = (index: number, different: Partial<AuditEvent> = {}) => ({
      ...at(index),
      actor: { ...anEvent().actor, issuer: ISSUER, subject: 'alice@home', key: KEY },
      address: '203.0.113.99',
      ...different,
    })
    const about = (index: number) => ({
      ...at(index),
      change: { action: 'limit.reset', target: 'standard:alice@home' },
    })

    test('removes the person from rows, blocks, filters, usage and export, and keeps the chain valid', async () => {
      const before = [...some(80), alice(80), about(81), ...some(20, 82)]
      await append(before, 'rows')
      await append(
        [...some(60, 200), alice(260), alice(261), about(262), ...some(40, 263)],
        'blocks',
      )
      await append([], 'blocks', T0 + 61_000)
      await exportDue(upkeep(T0), true)
      await append([alice(400), about(401)], 'blocks', T0 + HOUR_MS)
      const kept = alice(402, { time: new Date(T0 + 2 * HOUR_MS).toISOString() })
      await append([kept], 'blocks', T0 + HOUR_MS)
      expect(await everything()).toContain('alice@home')
      const orders = createErasureOrders(harness.db, () => T0 + HOUR_MS)
      const { id } = await orders.order({ issuer: ISSUER, subject: 'alice@home' })
      for (let run = 0; run < 5; run += 1) await carryOutErasures(upkeep(T0 + HOUR_MS))
      expect(await orders.find(id)).toMatchObject({ state: 'done', rows: 7 })
      expect(await all({ subject: 'alice@home' })).toEqual([kept])
      expect(await all({ address: '203.0.113.99' })).toEqual([kept])
      expect((await everything()).split('alice@home')).toHaveLength(2)
      const counted = await createAuditUsage(harness.db).usageOf(KEY, {
        sinceMs: T0,
        untilMs: T0 + 3 * HOUR_MS,
      })
      const used = [...before, ...some(60, 200), ...some(40, 263), kept]
        .filter(({ actor }) => actor.key === KEY)
        .filter(({ actor, id }) => actor.subject !== 'alice@home' || id === kept.id)
      expect(counted?.[0]?.requests).toBe(used.length)
      expect(await withoutKeys()).toMatchObject({ ok: true, erased: 7, unexplained: 0 })
    })

    test('of one tenant leaves the events of the others', async () => {
      const inTenant = (index: number, tenant: string) =>
        alice(index, { actor: { ...alice(0).actor, tenant } })
      await append([inTenant(1, 'acme'), inTenant(2, 'globex')], 'blocks')
      const orders = createErasureOrders(harness.db, () => T0 + HOUR_MS)
      await orders.order({ issuer: ISSUER, subject: 'alice@home', tenant: 'acme' })
      for (let run = 0; run < 3; run += 1) await carryOutErasures(upkeep(T0 + HOUR_MS))
      expect(await all({ subject: 'alice@home' })).toHaveLength(1)
      expect(await all({ tenant: 'globex' })).toHaveLength(1)
      expect(await withoutKeys()).toMatchObject({ ok: true, erased: 1 })
    })

    onEngines?.('covers events that arrive later, and a made-up erasure is found', async () => {
      await append([alice(1)], 'blocks')
      const orders = createErasureOrders(harness.db, () => T0 + HOUR_MS)
      const { id } = await orders.order({ issuer: ISSUER, subject: 'alice@home' })
      for (let run = 0; run < 3; run += 1) await carryOutErasures(upkeep(T0 + HOUR_MS))
      await append([alice(2), about(3)], 'blocks', T0 + HOUR_MS)
      expect(await everything()).not.toContain('alice@home')
      expect(await withoutKeys()).toMatchObject({ ok: true, erased: 1 })
      async function changed(after: number): Promise<ChainPage> {
        const one = await page(after)
        const blocks = one.blocks?.map((block) => ({
          ...block,
          lines: block.lines.map((line) => line.replace(id, 'made-up')),
        }))
        return { ...one, ...(blocks && { blocks }) }
      }
      const { findings } = await verifyChain(changed, undefined)
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'erasure' }))
    })
  })

  describe('export and retention', () => {
    onEngines?.(
      'an export of rows and blocks is verified without the database, object by object',
      async () => {
        const count = exportedRows + exportedInBlocks
        await append(some(exportedRows), 'rows')
        await append(some(exportedInBlocks, exportedRows), 'blocks')
        await append([], 'blocks', T0 + 61_000)
        for (let run = 0; run < 2; run += 1) await exportDue(upkeep(T0), true)
        const parts = await Promise.all(
          (await names()).map(async (name) =>
            partOf((await (await harness.bucket.get(name))?.text()) ?? ''),
          ),
        )
        expect(parts).toHaveLength(3)
        let given = 0
        const read = async (): Promise<ChainPage> => {
          const { rows, blocks, checkpoints } = parts[given] ?? { rows: [], checkpoints: [] }
          given += 1
          const file = { rows, checkpoints, head: null, ...(blocks && { blocks }) }
          return given < parts.length ? { ...file, next: given } : file
        }
        expect(await verifyChain(read, keys, { from: 1, to: count })).toMatchObject({
          ok: true,
          events: count,
          last: count,
        })
      },
    )

    test('retention deletes rows and blocks from the begin, with their usage, and a checkpoint explains it', async () => {
      await append(some(100), 'rows')
      await append(some(300, 100), 'blocks')
      const cut = T0 + 250_000
      await endRetention({ ...upkeep(T0), bucket: undefined }, cut)
      const left = await all({})
      expect(left.length).toBeLessThan(250)
      expect(left.length).toBeGreaterThanOrEqual(150)
      expect(await withoutKeys()).toMatchObject({ ok: true, last: 400 })
      const first = Number((await withoutKeys()).first)
      const { results } = await sql(`SELECT * FROM audit_usage WHERE first_seq < ${first}`).all()
      expect(results).toEqual([])
    })
  })
})
