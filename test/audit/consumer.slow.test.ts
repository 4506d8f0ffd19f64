/** The consumer of the stream on Node, over a real Redis and a real SQLite. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifyChain } from '../../cli/verify.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import type { AuditStores } from './harness.ts'
import { startNodeAudit } from './node-harness.ts'
import { prepare } from './prepared.ts'
import { storedIds as idsIn } from './stored.ts'

/** Longer than several retries of the consumer. */
const PATIENCE = { timeout: 100_000, interval: 100 }

let redis: TestRedis
let stores: AuditStores
beforeEach(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  stores = await startNodeAudit({ originUrl: 'http://127.0.0.1:9', redis })
  await stores.migrate()
  vi.spyOn(console, 'error').mockReturnValue()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await stores.close()
  await redis.close()
})

const eventsOf = (count: number) => Array.from({ length: count }, () => anEvent())
const waiting = () => redis.direct.xlen(DEFAULT_KEYS.auditStream)

async function column(sql: string): Promise<readonly unknown[]> {
  const { results } = await prepare(stores.db, sql).all()
  return results.flatMap((row) => Object.values(row))
}
const storedIds = async () => (await idsIn(stores.db)).toSorted()
const verify = () => verifyChain((after) => stores.chainPage(after), undefined)

describe('the consumer [R21]', () => {
  test('stores each of repeated and reordered events once', async () => {
    const events = eventsOf(120)
    await stores.enqueue('audit', [...events.toReversed(), ...events, ...events.slice(30, 90)])
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toEqual(events.map(({ id }) => id).toSorted())
    expect(await verify()).toMatchObject({ ok: true, events: 120 })
  })

  test('stores messages that are no events as dead letters, and the events beside them', async () => {
    const events = eventsOf(20)
    const different = (change: object) => JSON.stringify({ ...anEvent(), ...change })
    const poison = [
      ...['not JSON {', 'null', '17', '[]'],
      different({ decision: 'maybe' }),
      different({ time: '2026-99-20T12:00:00.000Z' }),
      different({ id: 'x' }),
      different({ status: 1.5 }),
      different({ limits: 'none' }),
      different({ address: { of: 'nobody' } }),
      different({ actor: { ...anEvent().actor, subject: 7 } }),
      different({ unknown: 1 }),
      different({ reason: undefined }),
    ]
    await stores.enqueue('audit', [...events.slice(0, 10), ...poison, ...events.slice(10)])
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toEqual(events.map(({ id }) => id).toSorted())
    expect((await column('SELECT body FROM dead_letters')).toSorted()).toEqual(poison.toSorted())
  })

  test('acknowledges nothing while the disk is full, and stores everything afterwards', async () => {
    const [pages] = await column('PRAGMA page_count')
    await column(`PRAGMA max_page_count = ${pages}`)
    const events = eventsOf(300)
    await stores.enqueue('audit', events)
    await expect.poll(() => vi.mocked(console.error).mock.calls.length, PATIENCE).toBeGreaterThan(0)
    expect(await waiting()).toBe(300)
    expect(await storedIds()).toEqual([])
    await column('PRAGMA max_page_count = 1000000')
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toEqual(events.map(({ id }) => id).toSorted())
    expect(await verify()).toMatchObject({ ok: true, events: 300 })
  })

  test('creates tables that are gone', async () => {
    await stores.enqueue('audit', eventsOf(1))
    await expect.poll(waiting, PATIENCE).toBe(0)
    for (const table of await column("SELECT name FROM sqlite_master WHERE type = 'table'"))
      if (!`${table}`.startsWith('sqlite_')) await column(`DROP TABLE ${table}`)
    const events = eventsOf(2)
    await stores.enqueue('audit', events)
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toEqual(events.map(({ id }) => id).toSorted())
  })
})
