import type { JSONWebKeySet } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { StoredRow } from '../../cli/chain-hash.ts'
import { publicKeysIn } from '../../cli/checkpoints.ts'
import { type ChainPage, verifyChain } from '../../cli/verify.ts'
import { type ChainPlace, createCheckpointSealer } from '../../src/audit/chain.ts'
import { type ChainRow, canonicalJson } from '../../src/audit/chain-row.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { deleteBefore } from '../../src/audit/sql/retention.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { IS_LONG, usualOrLong } from '../harness/long.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { chainBehind, insertEarlierRows } from './earlier-rows.ts'
import { anEvent } from './event.ts'
import { type AuditStores, describeStores } from './harness.ts'
import { migrationsOf, prepare, runAll } from './prepared.ts'
import { eachTextTampering, randomTampering, seeded, TEXTS } from './tampering.ts'

/** More than two checkpoints and several pages. */
const EVENTS = usualOrLong(2_500, 10_000)
/** The number of random tamperings on the first store, and on each other one: each kind has some of them. */
const TAMPERINGS = usualOrLong<readonly [first: number, others: number]>([27, 20], [100, 60])
/** Every 25th verification reads the whole chain from the database. */
const FULL_EVERY = 25
const SEED = 20_261_120
const PATIENCE = { timeout: 100_000, interval: 500 }

const keySet = JSON.stringify({ keys: [generateSigningJwk('audit-1')] })
const seal = createCheckpointSealer(JSON.parse(keySet).keys)
describeStores((start, { isFirst, isD1 }) => {
  /** Defines a test that only a long run repeats on D1, which contains an SQLite. */
  const onEngines = !isD1 || IS_LONG ? test : undefined
  const tamperings = TAMPERINGS[isFirst ? 0 : 1]
  let redis: TestRedis
  let harness: AuditStores
  beforeAll(async () => {
    redis = await startTestRedis()
    harness = await start({
      originUrl: 'http://127.0.0.1:9',
      redis,
      auditSigningKeys: keySet,
    })
  })
  afterAll(async () => {
    await harness?.close()
    await redis?.close()
  })

  const sql = (text: string) => prepare(harness.db, text)
  const batch = (statements: readonly string[]) => runAll(harness.db, statements.map(sql))
  const page = (after: number) => harness.chainPage(after)
  const verify = (keys?: JSONWebKeySet) => verifyChain(page, keys)

  /** Returns all pages as one. */
  async function wholeChain(): Promise<ChainPage> {
    const { next, ...first } = await page(0)
    const pages: ChainPage[] = [first]
    for (let after = next; after !== undefined; after = pages.at(-1)?.next)
      pages.push(await page(after))
    return {
      ...first,
      rows: pages.flatMap(({ rows }) => rows),
      blocks: pages.flatMap(({ blocks = [] }) => blocks),
      checkpoints: pages.flatMap(({ checkpoints }) => checkpoints),
    }
  }
  const empty = () =>
    batch(
      ['events', 'blocks', 'usage', 'heads', 'checkpoints'].map(
        (table) => `DELETE FROM audit_${table}`,
      ),
    )
  const append = (events: readonly AuditEvent[], nowMs = Date.now()) =>
    insertAuditEvents(harness.db, events, { seal, nowMs })
  /** As a version before the blocks. */
  const appendRows = (events: readonly AuditEvent[], nowMs = Date.now()) =>
    insertEarlierRows(harness.db, events, { seal, nowMs })
  const some = (count: number, different: Partial<AuditEvent> = {}) =>
    Array.from({ length: count }, () => anEvent(different))

  describe(`${EVENTS} rows and an event of the queue, in a database created before the chain existed`, () => {
    const events = Array.from({ length: EVENTS }, (_, index) =>
      anEvent({
        ...(index % 7 === 0 && { requestId: `漢 😀 \u0001 \\ " \r\n \u2028 ${index}` }),
        ...(index % 11 === 0 && {
          route: null,
          actor: { ...anEvent().actor, subject: 'a\0b\ud800' },
        }),
        ...(index % 13 === 0 && { change: { action: 'client.create', target: '\udfff' } }),
        ...(index % 17 === 0 && { durationsMs: { '\ud800': 0.1 + index }, lost: 2 ** 53 - 1 }),
      }),
    )
    const last = async () =>
      (await sql('SELECT seq FROM audit_heads').first<{ seq: number }>())?.seq

    beforeAll(async () => {
      const migration = (wanted: string) =>
        migrationsOf(harness.db).find(({ name }) => name === wanted)?.sql ?? ''
      for (const name of ['0001_audit_events.sql', '0002_audit_change.sql'])
        await batch(
          migration(name)
            .split(';')
            .filter((statement) => statement.trim() !== ''),
        )
      await batch([
        harness.db.dialect.recordsMigrations.texts.join(''),
        "INSERT INTO d1_migrations (name) VALUES ('0001_audit_events.sql'), ('0002_audit_change.sql')",
      ])
      await sql(
        "INSERT INTO audit_events VALUES ('old',1,'r','t',NULL,NULL,NULL,NULL,NULL,'GET',NULL," +
          "'allow','ok',200,'[]','{}','unknown',NULL,NULL,NULL)",
      ).run()
      await harness.migrate()
      for (let from = 0; from < EVENTS; from += 250)
        await appendRows(events.slice(from, from + 250))
      // Also delivers events of before once more.
      await harness.enqueue('audit', [...events.slice(0, 300), ...events.slice(-200)])
      await harness.enqueue('audit', [anEvent({ reason: 'after_all' })])
      await vi.waitFor(async () => expect(await last()).toBe(EVENTS + 1), PATIENCE)
    })

    test('each event is in the chain once, sealed by signatures; old rows stay outside [R21]', async () => {
      const verdict = await verify(publicKeysIn(keySet))
      expect(verdict.findings).toEqual([])
      expect(verdict).toMatchObject({ ok: true, events: EVENTS + 1, first: 1, last: EVENTS + 1 })
      expect(verdict.unchained).toBe(1)
      expect(verdict.checkpoints).toBeGreaterThanOrEqual(Math.floor(EVENTS / 1_500))
      expect(verdict.signed).toBe(verdict.checkpoints)
      // The cron of each minute, which seals. It deletes nothing, however old a row is.
      await harness.runCron('* * * * *')
      expect(await verify()).toMatchObject({ ok: true, unchained: 1 })
    })

    onEngines?.(
      `a change of each text, and each of ${tamperings} random tamperings, is found, and its row is named [S66]`,
      async () => {
        const random = seeded(SEED)
        const whole = await wholeChain()
        const others = [
          'time_ms',
          'status',
          'lost',
          'v',
          'partition',
          'seq',
          'previous_hash',
          'hash',
        ]
        expect([...TEXTS, ...others].sort()).toEqual(Object.keys(whole.rows[0] ?? {}).sort())
        await batch([
          'DROP TABLE IF EXISTS kept',
          'CREATE TABLE kept AS SELECT * FROM audit_events',
        ])
        const blind: string[] = []
        const kinds = new Set<string>()
        for (let run = 0; run <= tamperings; run += 1) {
          const { name, seqs, statements } =
            run === 0 ? eachTextTampering(EVENTS) : randomTampering(EVENTS, random, run - 1)
          kinds.add(name.replace(/\d+/g, 'n'))
          const list = seqs.join(', ')
          const touched = `seq IN (${list}, ${EVENTS + 1})`
          const results = await batch([
            ...statements,
            `SELECT * FROM audit_events WHERE partition = '0' AND ${touched} ORDER BY seq`,
          ])
          const now = results.at(-1)?.rows as StoredRow[]
          // Only rows that the statements can touch are read again; the rest of the chain is unchanged.
          const rows = [...whole.rows.filter(({ seq }) => !seqs.includes(Number(seq))), ...now]
          rows.sort((a, b) => Number(a.seq) - Number(b.seq))
          const { ok, findings } = await (run % FULL_EVERY === 0
            ? verify()
            : verifyChain(async () => ({ ...whole, rows }), undefined))
          const named = findings.filter(({ kind }) => kind !== 'head').map(({ seq }) => seq)
          const foreign = named.filter((seq) => !seqs.includes(seq) && seq <= EVENTS)
          if (ok || !seqs.every((seq) => named.includes(seq)) || foreign.length > 0)
            blind.push(`${name}: ${JSON.stringify(findings)}`)
          await batch([
            `DELETE FROM audit_events WHERE ${touched} OR id IN ` +
              `(SELECT id FROM kept WHERE seq IN (${list}))`,
            `INSERT INTO audit_events SELECT * FROM kept WHERE seq IN (${list})`,
          ])
        }
        expect(blind).toEqual([])
        expect(kinds.size).toBeGreaterThan(12)
        expect((await verify()).ok).toBe(true)
      },
    )
  })

  describe('a chain', () => {
    const T0 = Date.parse('2026-01-01T00:00:00.000Z')
    const keys = publicKeysIn(keySet)
    beforeAll(() => harness.migrate())
    beforeEach(empty)

    test('two concurrent consumers extend it and never fork it, with or without duplicates [R21]', async () => {
      const shared = some(200)
      const consumer = async (events: readonly AuditEvent[]) => {
        for (let from = 0; from < events.length; from += 10) {
          const batch = events.slice(from, from + 10)
          // A consumer that loses the race too often fails, and the queue delivers the batch again.
          await vi.waitFor(() => append(batch), { timeout: 100_000 })
        }
      }
      await Promise.all([
        consumer([...shared, ...some(100)]),
        consumer([...some(100), ...shared.toReversed()]),
      ])
      expect(await verify()).toMatchObject({ ok: true, events: 400, last: 400 })
    })

    test('a consumer that lost the race writes nothing, and appends after the winner', async () => {
      const [first, second] = [some(1), some(1)]
      let raced = false
      const slow: typeof seal = async (...statement) => {
        if (!raced) {
          raced = true
          await append(first, T0)
        }
        return seal(...statement)
      }
      await append(some(1), T0 - 60_000)
      await insertAuditEvents(harness.db, second, { seal: slow, nowMs: T0 })
      expect(raced).toBe(true)
      const { blocks = [] } = await page(0)
      const ids = blocks.flatMap(({ lines }) =>
        lines.map((line) => JSON.parse(line.split('\t', 1)[0] ?? '').id),
      )
      expect(ids.slice(1)).toEqual([...first, ...second].map(({ id }) => id))
      expect(await verify()).toMatchObject({ ok: true, events: 3 })
    })

    onEngines?.(
      'is sealed after 1,000 events, and after a minute without events, but not twice',
      async () => {
        const sealed = async () =>
          (await sql('SELECT seq FROM audit_checkpoints ORDER BY seq').all<{ seq: number }>())
            .results
        for (let index = 0; index < 10; index += 1) await append(some(99), T0)
        expect(await sealed()).toEqual([])
        await append(some(99), T0 + 1)
        expect(await sealed()).toEqual([{ seq: 1_089 }])
        await append(some(1), T0 + 2)
        await append([], T0 + 60_000)
        expect(await sealed()).toEqual([{ seq: 1_089 }])
        await append([], T0 + 60_001)
        await append([], T0 + 180_000)
        expect(await sealed()).toEqual([{ seq: 1_089 }, { seq: 1_090 }])
        expect(await verify(keys)).toMatchObject({
          ok: true,
          checkpoints: 2,
          signed: 2,
          sealed: 1_090,
        })
      },
    )

    onEngines?.('rewritten from one row on does not match its signed checkpoints', async () => {
      await appendRows(some(20), T0)
      await append([], T0 + 60_000)
      const { results } = await sql(
        'SELECT * FROM audit_events WHERE seq >= 7 ORDER BY seq',
      ).all<ChainRow>()
      const before = await sql(
        'SELECT seq, hash FROM audit_events WHERE seq = 6',
      ).first<ChainPlace>()
      const forged = await chainBehind(
        before as ChainPlace,
        results.map(({ hash: _hash, previous_hash: _previous, ...row }) => ({
          ...row,
          ...(row.seq === 7 && { subject: 'mallory' }),
        })),
      )
      await batch([
        "UPDATE audit_events SET subject = 'mallory' WHERE seq = 7",
        ...forged.rows.map(
          ({ hash, previous_hash, salt, commitment, seq }) =>
            `UPDATE audit_events SET hash = '${hash}', previous_hash = '${previous_hash}', ` +
            `salt = '${salt}', commitment = '${commitment}' WHERE seq = ${seq}`,
        ),
        `UPDATE audit_heads SET hash = '${forged.head.hash}'`,
      ])
      expect(await verify()).toMatchObject({ findings: [{ kind: 'checkpoint', seq: 20 }] })
      await sql(`UPDATE audit_checkpoints SET hash = '${forged.head.hash}'`).run()
      expect((await verify(keys)).findings).toMatchObject([
        { kind: 'checkpoint', seq: 0 },
        { kind: 'checkpoint', seq: 20, detail: 'its signature is not valid' },
      ])
      for (const change of [
        'UPDATE audit_checkpoints SET signature = NULL',
        'DELETE FROM audit_checkpoints',
      ]) {
        await sql(change).run()
        expect((await verify(keys)).findings).toMatchObject([{ kind: 'checkpoint', seq: 0 }])
      }
    })

    onEngines?.('with signatures of other keys fails verification', async () => {
      await append(some(3), T0)
      await append([], T0 + 60_000)
      const others = publicKeysIn(JSON.stringify({ keys: [generateSigningJwk('audit-1')] }))
      expect((await verify(others)).ok).toBe(false)
      expect((await verify(keys)).ok).toBe(true)
    })

    onEngines?.('without its last rows does not match its head', async () => {
      await appendRows(some(10), T0)
      await sql('DELETE FROM audit_events WHERE seq > 8').run()
      expect((await verify()).findings).toMatchObject([{ kind: 'missing', seq: 9 }])
      await append(some(2), T0)
      expect((await verify()).findings).toMatchObject([{ kind: 'missing', seq: 9 }])
      expect((await verify()).last).toBe(12)
    })

    onEngines?.('with a head that was set back or changed is extended without loss', async () => {
      await append(some(10), T0)
      await sql("UPDATE audit_heads SET seq = 4, hash = 'x'").run()
      expect((await verify()).findings).toMatchObject([{ kind: 'head', seq: 4 }])
      await append(some(5), T0)
      expect(await verify()).toMatchObject({ ok: true, events: 15 })
    })

    onEngines?.(
      'pruned by retention verifies from its first remaining row on, and only from there',
      async () => {
        const days = (count: number) => new Date(T0 + count * 86_400_000).toISOString()
        await append(some(600, { time: days(0) }), T0)
        await append(some(10, { time: days(5) }), T0)
        await append(some(1, { time: days(0) }), T0)
        await deleteBefore(harness.db, T0 + 86_400_000, { seal, nowMs: T0 })
        expect(await verify(keys)).toMatchObject({ ok: true, first: 601, last: 611, events: 11 })
        await append(some(3, { time: days(6) }), T0)
        expect(await verify(keys)).toMatchObject({ ok: true, last: 614 })

        await sql("UPDATE audit_checkpoints SET hash = 'x' WHERE kind = 'pruned'").run()
        expect((await verify()).findings).toMatchObject([{ kind: 'checkpoint', seq: 600 }])
        await sql('DELETE FROM audit_checkpoints').run()
        expect((await verify()).findings).toMatchObject([{ kind: 'missing', seq: 1 }])
      },
    )

    onEngines?.(
      'with more rows missing than retention deleted names the first missing row',
      async () => {
        await append(some(9, { time: new Date(T0).toISOString() }), T0)
        await append(some(9, { time: new Date(T0 + 10).toISOString() }), T0)
        await deleteBefore(harness.db, T0 + 5, { seal, nowMs: T0 })
        await sql('DELETE FROM audit_blocks WHERE first_seq = 10').run()
        expect((await verify(keys)).findings).toMatchObject([{ kind: 'missing', seq: 10 }])
      },
    )
  })
})

test('canonical JSON has sorted names, no white space, and the escapes of RFC 8785', () => {
  expect(canonicalJson({ b: -0, é: 1e21, aa: 'é"\\\n\u0007/', A: null, a: 0.1 })).toBe(
    '{"A":null,"a":0.1,"aa":"é\\"\\\\\\n\\u0007/","b":0,"é":1e+21}',
  )
})
