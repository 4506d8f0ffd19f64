/** The audit trail in a real PostgreSQL that fails, and that several processes write at once. */

import pg from 'pg'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest'
import { verifyChain } from '../../cli/verify.ts'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { auditQuerySchema } from '../../src/audit/log.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { sha256Now } from '../../src/runtimes/node/audit/digest.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { hasPostgres, type PostgresServer, startPostgres } from '../harness/postgres.ts'
import { type Running, run } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import { NODE } from './gateways.ts'
import type { AuditStores } from './harness.ts'
import { startTrail } from './node-harness.ts'
import { prepare } from './prepared.ts'
import { storedIds as idsIn } from './stored.ts'

const HOUR_MS = 3_600_000
const SEVEN = 'SELECT 7 AS value'
const NAMED =
  'SELECT name, statement, cardinality(parameter_types) AS parameters FROM pg_prepared_statements'
/** Events before those of the test and after them, so that an append looks up ids of rows, too. */
const MANY_ROWS = [
  `INSERT INTO audit_events (id, time_ms, request_id, trace_id, method, decision, reason, status,
      limits, durations_ms, address)
    SELECT md5(i::text), i * 1e9, '', repeat('x', 200), '', '', '', 200, '', '', '' FROM generate_series(1, 20000) i`,
  `INSERT INTO audit_blocks (first_seq, last_seq, min_ms, max_ms, previous_hash, hash, terms, ids, events)
    SELECT -i, -i, i, i, '', repeat('x', 200), '', '', '' FROM generate_series(1, 20000) i`,
  `INSERT INTO audit_counts (hour, first_seq, counts)
    SELECT 'x' || i, i, repeat('x', 200) FROM generate_series(1, 20000) i`,
  'ANALYZE audit_events, audit_blocks, audit_counts',
]
/** Longer than several retries of the consumer. */
const PATIENCE = { timeout: 100_000, interval: 100 }
const eventsOf = (count: number) => Array.from({ length: count }, () => anEvent())

describe.skipIf(!hasPostgres)('PostgreSQL [R38]', () => {
  let server: PostgresServer
  let redis: TestRedis
  let stores: AuditStores
  let url: string
  let databases = 0
  beforeAll(async () => {
    server = await startPostgres()
    redis = await startTestRedis()
  })
  afterAll(async () => {
    await redis?.close()
    await server?.close()
  })
  beforeEach(async () => {
    await redis.direct.flushall()
    databases += 1
    url = await server.database(`audit_${databases}`)
    stores = await startTrail(() => url, { originUrl: 'http://127.0.0.1:9', redis })
    vi.spyOn(console, 'error').mockReturnValue()
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await stores.close()
  })

  const waiting = () => redis.direct.xlen(DEFAULT_KEYS.auditStream)
  /** Returns the number of transactions that wait for another one. */
  const blocked = async () => {
    const sql = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return (await server.query(sql)).length
  }
  const failures = () => vi.mocked(console.error).mock.calls.length
  const verify = () => verifyChain((after) => stores.chainPage(after), undefined)
  const storedIds = async () => (await idsIn(stores.db)).toSorted()

  /** Sends events while the database fails, ends the failure, and expects each event once. */
  async function survives(begin: () => Promise<unknown>, end: () => Promise<unknown>) {
    const [before, during] = [eventsOf(5), eventsOf(150)]
    await stores.enqueue('audit', before)
    await expect.poll(waiting, PATIENCE).toBe(0)
    await begin()
    await stores.enqueue('audit', during)
    await expect.poll(failures, PATIENCE).toBeGreaterThan(0)
    expect(await waiting()).toBe(150)
    await end()
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toEqual([...before, ...during].map(({ id }) => id).toSorted())
    expect(await verify()).toMatchObject({ ok: true, events: 155 })
  }

  test('crashes and starts again: each event is stored once', async () => {
    await survives(server.crash, server.start)
  })

  test('crashes within a transaction, and starts again: each event is stored once', async () => {
    await stores.enqueue('audit', eventsOf(1))
    await expect.poll(waiting, PATIENCE).toBe(0)
    const lock = await connected(url)
    lock.on('error', () => {})
    await lock.query('BEGIN; SELECT * FROM audit_heads FOR UPDATE')
    await stores.enqueue('audit', eventsOf(150))
    await expect.poll(blocked, PATIENCE).toBe(1)
    await server.crash()
    await server.start()
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toHaveLength(151)
    expect(await verify()).toMatchObject({ ok: true, events: 151 })
  })

  test('refuses writes: each event is stored once it accepts them', async () => {
    const { pathname } = new URL(url)
    const change = `ALTER DATABASE ${pathname.slice(1)} SET default_transaction_read_only`
    const disconnect =
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity ' +
      `WHERE datname = '${pathname.slice(1)}'`
    await survives(
      async () => [await server.query(`${change} = on`), await server.query(disconnect)],
      async () => [await server.query(`${change} = off`), await server.query(disconnect)],
    )
  })

  test('ends a statement that waits too long: each event is stored after the lock is gone', async () => {
    await stores.close()
    const patient = url
    url = `${url}?statement_timeout=300`
    stores = await startTrail(() => url, { originUrl: 'http://127.0.0.1:9', redis })
    const lock = await connected(patient)
    await survives(
      () => lock.query('BEGIN; SELECT * FROM audit_heads FOR UPDATE'),
      () => lock.query('COMMIT'),
    )
  })

  test('loses its tables: they are created again, with their functions', async () => {
    await stores.enqueue('audit', eventsOf(1))
    await expect.poll(waiting, PATIENCE).toBe(0)
    const client = await connected(url)
    await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    const events = eventsOf(2)
    await stores.enqueue('audit', events)
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await storedIds()).toEqual(events.map(({ id }) => id).toSorted())
  })

  async function connected(to: string): Promise<pg.Client> {
    const client = new pg.Client(to)
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }

  // As with a pool such as PgBouncer, whose next transaction has another connection.
  test.each([
    ['has lost them', true, 'DEALLOCATE ALL'],
    ['has them already', false, `PREPARE "portcullis-${sha256Now(SEVEN)}" AS ${SEVEN}`],
  ])('does without names of statements if a connection %s', async (_what, begins, disturbance) => {
    const database = await openDatabase(url)
    onTestFinished(() => database.close())
    // Each call has one of the four connections of the pool.
    const four = (text: string, isRepeated: boolean) =>
      Promise.all(
        Array.from({ length: 4 }, async () => {
          const [found] = await database.run([{ text, values: [], isRepeated }])
          return found?.rows[0]
        }),
      )
    const sevens = Array.from({ length: 4 }, () => ({ value: 7 }))
    const names = () => four('SELECT count(*) AS value FROM pg_prepared_statements', false)
    if (begins) {
      expect(await four(SEVEN, true)).toEqual(sevens)
      expect(await names()).toEqual(Array.from({ length: 4 }, () => ({ value: 1 })))
    }
    await four(disturbance, false)
    expect(await four(SEVEN, true)).toEqual(sevens)
    await four('DEALLOCATE ALL', false)
    expect(await four(SEVEN, true)).toEqual(sevens)
    expect(await names()).toEqual(Array.from({ length: 4 }, () => ({ value: 0 })))
  })

  test('stores events with plans that read no whole table, and queries without names', async () => {
    const database = await openDatabase(url)
    onTestFinished(() => database.close())
    const db = consumerDatabase(database)
    const seal = createCheckpointSealer([])
    const append = (nowMs: number) => {
      const keyed = anEvent({ actor: { ...anEvent().actor, key: crypto.randomUUID() } })
      const store = () => insertAuditEvents(db, [keyed], { seal, nowMs })
      return withSchema(db, database.migrations, store)
    }
    await append(0)
    for (const text of MANY_ROWS) await database.run([{ text, values: [] }])
    await append(HOUR_MS)
    const statements = async () => {
      const [found] = await database.run([{ text: NAMED, values: [] }])
      return (found?.rows ?? []) as { name: string; statement: string; parameters: number }[]
    }
    const named = await statements()
    expect(named.length).toBeGreaterThan(12)
    const wholeTables: string[] = []
    for (const { name, statement, parameters } of named) {
      const values = Array.from({ length: parameters }, () => 'NULL').join(', ')
      const explain = `EXPLAIN EXECUTE "${name}"${values && `(${values})`}`
      const plan = await database.run([
        { text: 'SET LOCAL plan_cache_mode = force_generic_plan', values: [] },
        { text: explain, values: [] },
      ])
      if (/Seq Scan on audit_(events|blocks|usage|counts)/.test(JSON.stringify(plan)))
        wholeTables.push(statement)
    }
    expect(wholeTables).toEqual([])
    const log = createAuditLog(db)
    const query = auditQuerySchema.parse({ subject: 'nobody', since: '2026-01-01T00:00:00.000Z' })
    for (let time = 0; time < 6; time += 1) await log.query(query)
    // A query has several connections of the pool.
    const kept = await Promise.all([statements(), statements(), statements(), statements()])
    expect(kept.flat()).toHaveLength(named.length)
  })

  test('gets its tables once if eight gateways start at once', async () => {
    const fresh = await server.database('fresh')
    const opened = await Promise.all(Array.from({ length: 8 }, () => openDatabase(fresh)))
    onTestFinished(async () => void (await Promise.all(opened.map(({ close }) => close()))))
    const counts = await Promise.all(
      opened.map((one) => {
        const db = consumerDatabase(one)
        const count = prepare(db, 'SELECT count(*) AS n FROM dead_letters')
        return withSchema(db, one.migrations, async () => (await count.first<{ n: number }>())?.n)
      }),
    )
    expect(counts).toEqual(Array.from({ length: 8 }, () => 0))
  })

  test('has one chain that four processes extend; one that is killed in a transaction leaves no gap', async () => {
    const started: Running[] = []
    onTestFinished(async () => void (await Promise.all(started.map((each) => each.stop()))))
    const append = () =>
      run([NODE, 'test/audit/append.ts'], { AUDIT_DATABASE: url }, /stored \S+\n/)
    started.push(...(await Promise.all([append(), append(), append(), append()])))
    const lock = await connected(url)
    await lock.query('BEGIN; SELECT * FROM audit_heads FOR UPDATE')
    // All four are in the transaction that appends a batch, before its first row.
    await expect.poll(blocked, PATIENCE).toBe(4)
    const [doomed, ...survivors] = started
    doomed?.child.kill('SIGKILL')
    await lock.query('COMMIT')
    const batches = (each: Running) => each.output().split('\n').length
    const counts = survivors.map(batches)
    await expect
      .poll(
        () => survivors.every((each, index) => batches(each) > 60 + (counts[index] ?? 0)),
        PATIENCE,
      )
      .toBe(true)
    await Promise.all(survivors.map((each) => each.stop()))
    const acknowledged = started.flatMap(
      (each) => each.output().match(/(?<=stored )\S+(?=\n)/g) ?? [],
    )
    const ids = new Set(await storedIds())
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([])
    const verdict = await verify()
    expect(verdict).toMatchObject({ ok: true, findings: [], first: 1, events: ids.size })
    expect(verdict.last).toBe(ids.size)
  })

  test('finds and erases persons beside characters that it cannot store', async () => {
    const event = anEvent({
      actor: { ...anEvent().actor, subject: 'a\0b\ud800' },
      change: { action: 'client.create', target: '\udfff:alice' },
    })
    await stores.enqueue('audit', [event, 'no event \0 \ud800'])
    await expect.poll(waiting, PATIENCE).toBe(0)
    const found = await createAuditLog(stores.db).query(
      auditQuerySchema.parse({ subject: 'a\ufffdb\ufffd' }),
    )
    expect(found.events).toMatchObject([{ id: event.id, change: { target: '\ufffd:alice' } }])
    const letters = await prepare(stores.db, 'SELECT body FROM dead_letters').all()
    expect(letters.results).toEqual([{ body: 'no event \ufffd \ufffd' }])
    expect(await verify()).toMatchObject({ ok: true, events: 1 })
  })

  test('finds events by a reason or its code, enforced or observed, page by page', async () => {
    const reasons = ['rate_limited', 'rate_limited:a', 'rate_limited:b', 'rate_limiter', 'ok']
    const enforced = reasons.map((reason) => anEvent({ reason }))
    const observed = reasons.map((reason) => anEvent({ reason: 'x', observed: ['y', reason] }))
    await stores.enqueue('audit', [...enforced, ...observed])
    await expect.poll(waiting, PATIENCE).toBe(0)
    const find = async (query: Record<string, string>) => {
      const page = await createAuditLog(stores.db).query(auditQuerySchema.parse(query))
      return { ids: page.events.map(({ id }) => id), cursor: page.cursor ?? '' }
    }
    for (const [name, events] of [
      ['reason', enforced],
      ['observed', observed],
    ] as const) {
      const newest = events.map(({ id }) => id).toReversed()
      expect((await find({ [name]: 'rate_limited:a' })).ids).toEqual([events[1]?.id])
      const { ids, cursor } = await find({ [name]: 'rate_limited', limit: '2' })
      expect(ids).toEqual(newest.slice(2, 4))
      const rest = await find({ [name]: 'rate_limited', limit: '2', cursor })
      expect(rest).toEqual({ ids: newest.slice(4), cursor: '' })
    }
  })

  test('finds events by the host, the origin and the API key', async () => {
    const [key, other] = [crypto.randomUUID(), crypto.randomUUID()]
    const named = anEvent({ host: '*.example.com', origin: 'main' })
    const keyed = anEvent({ actor: { ...anEvent().actor, key } })
    await stores.enqueue('audit', [named, keyed, anEvent()])
    await expect.poll(waiting, PATIENCE).toBe(0)
    const found = async (query: Record<string, string>) =>
      (await createAuditLog(stores.db).query(auditQuerySchema.parse(query))).events
    expect(await found({ host: '*.example.com' })).toEqual([named])
    expect(await found({ origin: 'main' })).toEqual([named])
    expect(await found({ key })).toEqual([keyed])
    expect(await found({ key: other })).toEqual([])
  })

  test('is not opened with a wrong password or a database that does not exist', async () => {
    const wrong = new URL(url)
    wrong.password = 'guessed-password'
    await expect(openDatabase(wrong.href)).rejects.toThrow(/^password authentication failed/)
    await expect(openDatabase(wrong.href)).rejects.not.toThrow('guessed-password')
    await expect(openDatabase(`${url}_missing`)).rejects.toThrow('does not exist')
  })
})
