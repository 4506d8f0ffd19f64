import { v7 } from 'uuid'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { StoredRow } from '../../cli/chain-hash.ts'
import { publicKeysIn } from '../../cli/checkpoints.ts'
import { type ChainPage, verifyChain } from '../../cli/verify.ts'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { partOf } from '../../src/audit/chain-export.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import type { ExportBucket } from '../../src/audit/r2/chain-export.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createErasureOrders } from '../../src/audit/sql/erasure-orders.ts'
import { carryOutErasures, endRetention, exportDue } from '../../src/runtimes/audit/upkeep.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { IS_LONG, usualOrLong } from '../harness/long.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { insertEarlierRows, toFirstFormat } from './earlier-rows.ts'
import { anEvent } from './event.ts'
import { type AuditStores, describeStores } from './harness.ts'
import { prepare, runAll } from './prepared.ts'
import { rowsIn } from './stored.ts'
import { randomTampering, seeded } from './tampering.ts'

/** More than two checkpoints, several pages, and rows that are in the export only. */
const EVENTS = usualOrLong(2_500, 10_000)
/** The oldest events, which retention deletes. */
const PRUNED = 1_000
/** The number of tamperings on the first store, and on each other one. */
const TAMPERINGS = usualOrLong<readonly [first: number, others: number]>([10, 5], [40, 15])
const SEED = 20_261_121
const T0 = Date.parse('2026-01-01T00:00:00.000Z')
const HOUR_MS = 3_600_000
const ISSUER = 'https://issuer.example'
const ALICE = 'alice@home.example'
const keySet = JSON.stringify({ keys: [generateSigningJwk('audit-1')] })
const keys = publicKeysIn(keySet)
const seal = createCheckpointSealer(JSON.parse(keySet).keys)
describeStores((start, { isFirst, isD1 }) => {
  /**
   * Defines a test that only a long run repeats on D1. D1 contains an SQLite, and receives the same statements except
   * inserts. Tests of inserts, binary values, transactions and the bucket run on D1 each time.
   */
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
    await runAll(harness.db, [
      ...tables.map((table) => sql(`DELETE FROM audit_${table}`)),
      sql('DELETE FROM dead_letters'),
    ])
    await harness.bucket.delete(await names())
  }
  const iso = (ms: number) => new Date(ms).toISOString()
  const by = (subject: string, different: Partial<AuditEvent> = {}, issuer = ISSUER): AuditEvent =>
    anEvent({
      time: iso(T0),
      actor: { ...anEvent().actor, issuer, subject },
      address: subject === ALICE ? '203.0.113.99' : '192.0.2.1',
      ...different,
    })
  async function append(
    events: readonly AuditEvent[],
    nowMs = T0,
    insert: (...args: Parameters<typeof insertEarlierRows>) => Promise<unknown> = insertAuditEvents,
  ) {
    for (let from = 0; from < events.length; from += 250)
      await insert(harness.db, events.slice(from, from + 250), { seal, nowMs })
  }
  /** As a version before the blocks. */
  const appendRows = (events: readonly AuditEvent[]) => append(events, T0, insertEarlierRows)
  const upkeep = (nowMs: number, bucket: ExportBucket | undefined = harness.bucket) => ({
    db: harness.db,
    seal,
    nowMs,
    bucket,
  })
  const orders = (nowMs: number) => createErasureOrders(harness.db, () => nowMs)
  const order = (nowMs = T0, subject = ALICE) => orders(nowMs).order({ issuer: ISSUER, subject })
  const page = (after: number) => harness.chainPage(after)
  const verify = () => verifyChain(page, keys)
  async function rows(): Promise<readonly StoredRow[]> {
    const found: StoredRow[] = []
    for (let after: number | undefined = 0; after !== undefined; ) {
      const one: ChainPage = await page(after)
      found.push(...rowsIn(one))
      after = one.next
    }
    return found
  }
  /** Returns an object of the export as a page of the chain. */
  const pageOf = (text: string) => partOf(text) as Pick<ChainPage, 'rows' | 'blocks'>
  /** Returns everything stored in the database and in the bucket, as text. */
  async function everything(): Promise<string> {
    const texts = await Promise.all(
      (await names()).map(async (name) => (await (await harness.bucket.get(name))?.text()) ?? ''),
    )
    const letters = await sql('SELECT * FROM dead_letters').all()
    const erasures = await sql('SELECT * FROM audit_erasures').all()
    return JSON.stringify([await rows(), letters.results, erasures.results]) + texts.join('')
  }
  /** Runs the ordered erasures until they are done, and once more. */
  async function carryOut(nowMs = T0, bucket?: ExportBucket) {
    const pending = () =>
      sql('SELECT count(*) AS n FROM audit_erasures WHERE done_ms IS NULL').first<{ n: number }>()
    for (let run = 0; run < 20 && Number((await pending())?.n) > 0; run += 1)
      await carryOutErasures(upkeep(nowMs, bucket))
    await carryOutErasures(upkeep(nowMs, bucket))
  }

  test('an erasure within a tenant leaves the events of every other tenant, exported or late [S88]', async () => {
    await empty()
    const of = (tenant: string | null, different: Partial<AuditEvent> = {}) =>
      by(ALICE, {
        actor: { ...anEvent().actor, issuer: ISSUER, subject: ALICE, tenant },
        ...different,
      })
    const change = { action: 'limit.reset', target: `standard:${ALICE}` }
    const operator = (tenant: string) =>
      by('olga', { actor: { ...anEvent().actor, issuer: ISSUER, subject: 'olga', tenant }, change })
    const all = () => [of('acme'), of('globex'), of(null), operator('acme'), operator('globex')]
    await append(all())
    // After a minute, a checkpoint ends the first object of the export.
    await append([by('bob')], T0 + 61_000)
    await exportDue(upkeep(T0, harness.bucket), true)
    await append(all())
    const letter = (tenant: string) => JSON.stringify({ subject: ALICE, tenant })
    for (const tenant of ['acme', 'globex'])
      await sql('INSERT INTO dead_letters VALUES (?, 1, ?)').bind(tenant, letter(tenant)).run()
    const { id } = await orders(T0).order({ issuer: ISSUER, subject: ALICE, tenant: 'acme' })
    // This event arrives while the erasure is pending, the next ones after it.
    await append([of('acme')])
    await carryOut(T0)
    await append([of('acme'), of('globex')])
    expect(await orders(T0).find(id)).toMatchObject({ state: 'done', rows: 4, tenant: 'acme' })

    const exported = (
      await Promise.all(
        (await names()).map(async (name) => (await (await harness.bucket.get(name))?.text()) ?? ''),
      )
    ).flatMap((text) => rowsIn(pageOf(text)))
    const tenantsOf = (some: readonly object[]) =>
      some.flatMap((row) => {
        const { subject, tenant } = row as { subject: unknown; tenant: unknown }
        return subject === ALICE ? [tenant] : []
      })
    expect(exported.length).toBeGreaterThan(0)
    expect(tenantsOf(exported)).toEqual(['globex', null])
    expect(tenantsOf(await rows())).toEqual(['globex', null, 'globex', null, 'globex'])
    const changes = (await rows()).flatMap((row) => (row.change === null ? [] : [row.tenant]))
    expect(changes.filter((tenant) => tenant === 'acme')).toEqual([])
    expect(changes.filter((tenant) => tenant === 'globex')).toHaveLength(2)
    const letters = await sql('SELECT body FROM dead_letters').all()
    expect(letters.results).toEqual([{ body: letter('globex') }])
    expect(await verify()).toMatchObject({ ok: true, findings: [] })
  })

  const HOSTILE = [
    ALICE,
    'a"b',
    String.raw`a\b`,
    String.raw`a\u0041`,
    'ä\u{1F600}',
    'x","tenant":"acme","subject":"',
    '{"tenant":"acme","subject":"alice"}',
  ]

  test.each(isD1 && !IS_LONG ? HOSTILE.slice(0, 1) : HOSTILE)(
    'an erasure of %j within a tenant removes its dead letters alone',
    async (subject) => {
      await empty()
      const text = (value: unknown) => JSON.stringify(value)
      const escaped = (value: string) =>
        [...value].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
      const own = [
        text({ subject, tenant: 'acme' }),
        JSON.stringify({ tenant: 'acme', subject }, null, 1),
        text({
          id: 1,
          actor: { issuer: ISSUER, subject, tenant: 'acme' },
          tool: '"tenant":"globex"',
        }),
        text({ body: text({ actor: { subject, tenant: 'acme' } }) }),
        text(text({ subject, tenant: 'acme' })),
        text({
          actor: { subject: 'olga', tenant: 'acme' },
          change: { target: `standard:${subject}` },
        }),
        ...(subject === ALICE
          ? [`{"subject":"${escaped(ALICE)}","tenant":"${escaped('acme')}"}`]
          : []),
      ]
      const others = [
        text({ subject, tenant: 'globex' }),
        text({ subject, tenant: 'acme2' }),
        text({ subject, tenant: 'globex', client: 'acme' }),
        text({ subject, tenant: 'globex', note: text({ subject, tenant: 'acme' }) }),
        text({ subject, tenant: 'globex', note: '"tenant":"acme"' }),
        text({ actor: { subject, tenant: 'globex' }, change: { tenant: 'acme' } }),
        text({ subject, tenant: null, client: 'acme' }),
        text({ subject: `${subject}x`, tenant: 'acme' }),
        text({ subject: `x${subject}`, tenant: 'acme' }),
        text({ subject: 'bob', tenant: 'acme', note: subject }),
        text({ subject: `x","subject":${text(subject)},"tenant":"acme","y":"`, tenant: 'globex' }),
        `${subject} acme`,
      ]
      const rowsOf = [...own, ...others].map((body, index) => [`m${index}`, 1, body])
      for (const row of rowsOf)
        await sql('INSERT INTO dead_letters VALUES (?, ?, ?)')
          .bind(...row)
          .run()
      const { id } = await orders(T0).order({ issuer: ISSUER, subject, tenant: 'acme' })
      await carryOut(T0)
      expect(await orders(T0).find(id)).toMatchObject({ state: 'done' })
      const left = await sql('SELECT body FROM dead_letters').all<{ body: string }>()
      expect(left.results.map(({ body }) => body).toSorted()).toEqual(others.toSorted())
    },
  )

  describe(`an erasure over ${EVENTS} events, some of them exported, some in the export only [S66]`, () => {
    const OTHERS_SAMPLE = 3
    beforeAll(async () => {
      await empty()
      const events = Array.from({ length: EVENTS }, (_, index) => {
        if (index % 5 === 0) return by(ALICE, { time: iso(T0 + index) })
        if (index % 5 === 1) return by(ALICE, { time: iso(T0 + index) }, 'https://other.example')
        if (index % 500 === 2) {
          const change = { action: 'limit.reset', target: `standard:${ALICE}` }
          return by('olga', { time: iso(T0 + index), change })
        }
        return by(`bob${index % OTHERS_SAMPLE}`, {
          time: iso(T0 + index),
          observed: ['rate_limited:a'],
        })
      })
      await appendRows(events)
      for (let run = 0; run < 2; run += 1) await exportDue(upkeep(T0, harness.bucket))
      await endRetention(upkeep(T0), T0 + PRUNED)
    })

    test('leaves a chain that verifies, and reports the number of erased rows', async () => {
      const before = await verify()
      expect(before).toMatchObject({ ok: true, first: PRUNED + 1, erased: 0 })
      const { id } = await order(T0 + EVENTS)
      await sql("INSERT INTO dead_letters VALUES ('m', 1, ?)").bind(`{"x":"${ALICE}"}`).run()
      expect(await orders(T0).find(id)).toMatchObject({ state: 'pending' })
      await carryOut(T0 + EVENTS)
      const erasure = await orders(T0).find(id)
      // A fifth of the issuer and subject, and some changes by operators.
      expect(erasure).toMatchObject({ state: 'done', rows: EVENTS / 5 + EVENTS / 500 })
      const after = await verify()
      const left = EVENTS - PRUNED
      expect(after).toMatchObject({ ok: true, findings: [], unexplained: 0, events: left + 2 })
      expect(after.erased).toBe(left / 5 + left / 500)
      const kept = (await rows()).filter(({ subject }) => subject === ALICE)
      expect(kept).toHaveLength(left / 5)
      expect(kept.every(({ issuer }) => issuer === 'https://other.example')).toBe(true)
    })

    test('leaves no data with the subject and its issuer, nor the subject as a target', async () => {
      const texts = await Promise.all(
        (await names()).map(async (name) => (await (await harness.bucket.get(name))?.text()) ?? ''),
      )
      const exported = texts.flatMap((text) => partOf(text).rows)
      expect(exported.length).toBeGreaterThan(EVENTS / 2)
      for (const row of [...exported, ...(await rows())]) {
        expect(row.subject === ALICE && row.issuer === ISSUER).toBe(false)
        expect(String(row.change)).not.toContain(ALICE)
      }
      const { results } = await sql('SELECT * FROM audit_erasures').all()
      expect(JSON.stringify(results)).not.toContain(ALICE)
      expect((await sql('SELECT * FROM dead_letters').all()).results).toEqual([])
    })

    test('leaves an export that verifies offline and names what was erased', async () => {
      const texts = await Promise.all(
        (await names()).map(async (name) => (await (await harness.bucket.get(name))?.text()) ?? ''),
      )
      const parts = texts.map(partOf)
      const all = parts.flatMap((part) => part.rows)
      const to = Number(all.at(-1)?.seq)
      const whole = {
        rows: all,
        head: null,
        checkpoints: parts.flatMap(({ checkpoints }) => checkpoints),
      }
      const offline = await verifyChain(async () => whole, keys, { from: 1, to })
      expect(offline).toMatchObject({ ok: true, events: to, findings: [] })
      expect(offline.erased).toBe(Math.ceil(to / 5) + Math.ceil(to / 500))
      expect(offline.unexplained).toBe(offline.erased)
    })

    onEngines?.(
      `each of ${tamperings} random tamperings after it is found, and its row is named`,
      async () => {
        const random = seeded(SEED)
        const all = (await rows()).filter(({ salt }) => salt !== undefined)
        const first = Number(all[0]?.seq)
        const last = Number(all.at(-1)?.seq)
        // The begin and the end of the erasure are in blocks.
        const { head, blocks = [] } = await page(last)
        const pruned = (await page(0)).checkpoints.filter(({ kind }) => kind === 'pruned')
        const forgotten = new Set(all.filter(({ salt }) => salt === null).map(({ seq }) => seq))
        await runAll(harness.db, [
          sql('DROP TABLE IF EXISTS kept'),
          sql('CREATE TABLE kept AS SELECT * FROM audit_events'),
        ])
        const blind: string[] = []
        for (let run = 0, turn = 0; run < tamperings; turn += 1) {
          const { name, seqs, statements } = randomTampering(last, random, turn)
          if (seqs.some((seq) => seq < first)) continue
          // These rows have no salt left that could be deleted.
          if (name.startsWith('forget') && seqs.some((seq) => forgotten.has(seq))) continue
          run += 1
          const list = seqs.join(', ')
          const touched = `seq IN (${list}, ${last + 1})`
          const select = `SELECT * FROM audit_events WHERE partition = '0' AND ${touched}`
          const results = await runAll(harness.db, [...statements, select].map(sql))
          const now = results.at(-1)?.rows as StoredRow[]
          const changed = [...all.filter(({ seq }) => !seqs.includes(Number(seq))), ...now]
          changed.sort((a, b) => Number(a.seq) - Number(b.seq))
          const { ok, findings } = await verifyChain(
            async () => ({ rows: changed, blocks, checkpoints: pruned, head }),
            undefined,
          )
          const named = findings.map(({ seq }) => seq)
          if (ok || !seqs.every((seq) => named.includes(seq))) blind.push(name)
          await runAll(
            harness.db,
            [
              `DELETE FROM audit_events WHERE ${touched} OR id IN (SELECT id FROM kept WHERE seq IN (${list}))`,
              `INSERT INTO audit_events SELECT * FROM kept WHERE seq IN (${list})`,
            ].map(sql),
          )
        }
        expect(blind).toEqual([])
        expect((await verify()).ok).toBe(true)
      },
    )
  })

  describe('an erasure [S66]', () => {
    beforeEach(empty)

    onEngines?.(
      'that is forged is found, with an unknown id and with the id of another erasure',
      async () => {
        await appendRows([by(ALICE), by('bob'), by('carol')])
        const anonymous =
          'issuer = NULL, subject = NULL, client = NULL, tenant = NULL, token_id_hash = NULL, api_key = NULL, ' +
          'grants = NULL, fields = NULL, ' +
          "request_id = '', trace_id = '', address = 'erased', salt = NULL"
        await sql(`UPDATE audit_events SET ${anonymous}, erasure = 'made-up' WHERE seq = 2`).run()
        expect((await verify()).findings).toMatchObject([
          { kind: 'checkpoint' },
          { kind: 'erasure', seq: 2 },
        ])
        await empty()
        await appendRows([by(ALICE), by('bob'), by('carol')])
        const { id } = await order()
        await carryOut()
        expect(await verifyChain(page, undefined)).toMatchObject({ ok: true, erased: 1 })
        await sql(`UPDATE audit_events SET ${anonymous}, erasure = '${id}' WHERE seq = 2`).run()
        expect((await verifyChain(page, undefined)).findings).toMatchObject([
          {
            kind: 'erasure',
            seq: 1,
            detail: `2 rows name the erasure ${id}, but it erased only 1`,
          },
        ])
      },
    )

    onEngines?.('does not allow a later change of the decision in an erased row', async () => {
      await appendRows([by(ALICE), by('bob')])
      await order()
      await carryOut()
      expect(await verifyChain(page, undefined)).toMatchObject({ ok: true, erased: 1 })
      // Rows of the first format have no commitments, and their hash covers the erased data.
      await sql(
        'UPDATE audit_events SET v = NULL, commitment = NULL, change_commitment = NULL, ' +
          "decision = 'allow', reason = 'ok' WHERE seq = 1",
      ).run()
      expect((await verifyChain(page, undefined)).findings).toMatchObject([
        { kind: 'changed', seq: 1 },
      ])
    })

    onEngines?.(
      'removes names of clients and limits, and no other id that an operator changed',
      async () => {
        const changed = (action: string, target: string) =>
          by('olga', { change: { action, target } })
        const { id } = await order(T0, 'bob')
        await append([by('olga')], T0 - 60_000)
        const kept = ['audit.erase', 'ban.delete', 'token.mint'].map((action) =>
          changed(action, id),
        )
        const gone = [changed('client.create', id), changed('limit.reset', `standard:${id}`)]
        await append([...kept, ...gone])
        await exportDue(upkeep(T0), true)
        await order(T0, id)
        await carryOut()
        await append([changed('ban.create', id), changed('client.disable', id)])
        const changes = (await rows()).map(
          ({ change }) => change && JSON.parse(String(change)).action,
        )
        const actions = [null, 'audit.erase', 'ban.delete', 'token.mint', null, null]
        expect(changes.slice(0, 6)).toEqual(actions)
        expect(changes.slice(-2)).toEqual(['ban.create', null])
        const [name = ''] = await names()
        const exported = rowsIn(pageOf((await (await harness.bucket.get(name))?.text()) ?? ''))
        expect(exported.map(({ change }) => change === null)).toEqual(
          actions.map((action) => action === null),
        )
        expect(await verifyChain(page, undefined)).toMatchObject({ ok: true, unexplained: 0 })
      },
    )

    onEngines?.(
      'removes relation tuples that name the subject in any position, and no others',
      async () => {
        const user = `user:${ALICE}`
        const about = [
          `+order:1#viewer@user:bob -order:1#owner@${user}`,
          `tenant=acme +${user}#manager@user:bob`,
          `+order:1#viewer@${user}#friend`,
          `+order:1#viewer@user:https%3A//idp.example|${ALICE}`,
          `+order:1#viewer@user:acme|${ALICE}|https%3A//idp.example`,
        ]
        const others = [
          `+order:1#viewer@${user}.uk`,
          `+order:1#viewer@user:not-${ALICE}`,
          `+order:1#alice@user:bob#home`,
          `tenant=${encodeURIComponent(ALICE)} +order:1#viewer@user:bob`,
        ]
        const changed = (target: string, different: Partial<AuditEvent> = {}) =>
          by('olga', { change: { action: 'relations.write', target }, ...different })
        // A minute earlier, so that later events are sealed and can be exported.
        await append([by('olga')], T0 - 60_000)
        await append([...about, ...others].map((target) => changed(target)))
        await exportDue(upkeep(T0), true)
        await sql("INSERT INTO dead_letters VALUES ('m', 1, ?)").bind(`"+a:1#b@${user}"`).run()
        await order(T0)
        await carryOut()
        // After the start and the end of the erasure, in the trail only.
        await append([...about, ...others].map((target) => changed(target)))
        const targets = (some: readonly StoredRow[]) =>
          some.flatMap(({ change }) => (change === null ? [] : [JSON.parse(String(change)).target]))
        expect(targets(await rows()).filter((target) => target.includes('#'))).toEqual([
          ...others,
          ...others,
        ])
        const [name = ''] = await names()
        const exported = rowsIn(pageOf((await (await harness.bucket.get(name))?.text()) ?? ''))
        expect(targets(exported)).toEqual(others)
        expect(await sql('SELECT * FROM dead_letters').all()).toMatchObject({ results: [] })
        expect(await verifyChain(page, undefined)).toMatchObject({ ok: true, unexplained: 0 })
      },
    )

    onEngines?.('finds a subject with a separator in the name, whole and as a part', async () => {
      const about = ['auth0|7', 'https%3A//idp.example|auth0%7C7'].map(
        (id) => `+order:1#viewer@user:${id}`,
      )
      const others = ['auth0|77', 'auth0%7C', 'auth1|7'].map((id) => `+order:1#viewer@user:${id}`)
      const changed = [...about, ...others].map((target) =>
        by('olga', { change: { action: 'relations.write', target } }),
      )
      await append(changed)
      await order(T0, 'auth0|7')
      await carryOut()
      // Late events are recognized by digests.
      await append(changed.map((event) => ({ ...event, id: v7() })))
      const targets = (await rows()).flatMap(({ change }) => {
        const { target = '' } = change === null ? {} : JSON.parse(String(change))
        return target.includes('#') ? [target] : []
      })
      expect(targets).toEqual([...others, ...others])
    })

    test('appends more events than one value can bind, in one transaction', async () => {
      const target = `+order:1#viewer@user:${'x'.repeat(20_000)}`
      const change = { action: 'relations.write', target }
      const events = Array.from({ length: 100 }, () => by('olga', { change }))
      await insertAuditEvents(harness.db, events, { seal, nowMs: T0 })
      const stored = await rows()
      expect(stored.map(({ id }) => id)).toEqual(events.map(({ id }) => id))
      expect(await verifyChain(page, undefined)).toMatchObject({ ok: true })
    })

    onEngines?.('covers decisions until it was ordered, and no later ones', async () => {
      await append([by(ALICE), by(ALICE, { time: iso(T0 + 1) })])
      await order(T0)
      await carryOut(T0 + 10)
      expect((await rows()).slice(0, 2).map(({ subject }) => subject)).toEqual([null, ALICE])
    })

    test('covers late events that arrive through the queue', async () => {
      await order(T0)
      await carryOut(T0)
      const late = by(ALICE)
      const reset = by('olga', { change: { action: 'limit.reset', target: `standard:${ALICE}` } })
      await harness.enqueue('audit', [late, reset])
      await vi.waitFor(async () => expect(await rows()).toHaveLength(4), { timeout: 100_000 })
      expect(await everything()).not.toContain(ALICE)
      expect(await verifyChain(page, undefined)).toMatchObject({ ok: true, erased: 0 })
    })

    onEngines?.(
      'leaves decisions after the order unchanged, although it recognizes the subject',
      async () => {
        await order(T0)
        await carryOut(T0)
        const change = { action: 'limit.reset', target: `standard:${ALICE}` }
        await append([by(ALICE, { time: iso(T0 + 1) }), by('olga', { time: iso(T0 + 1), change })])
        expect((await rows()).slice(-2)).toMatchObject([
          { subject: ALICE, change: null },
          { subject: 'olga', change: JSON.stringify(change) },
        ])
      },
    )

    test('covers events that a consumer is writing at that moment', async () => {
      await append([by('bob')], T0 - 60_000)
      let isOrdered = false
      const slow: typeof seal = async (...statement) => {
        if (!isOrdered) {
          isOrdered = true
          await order(T0)
          await carryOut(T0)
        }
        return seal(...statement)
      }
      await insertAuditEvents(harness.db, [by(ALICE)], { seal: slow, nowMs: T0 })
      expect(isOrdered).toBe(true)
      expect((await rows()).at(-1)).toMatchObject({
        subject: null,
        address: 'erased',
        erasure: null,
      })
      expect(await everything()).not.toContain(ALICE)
    })

    test('resumes where a run that died has stopped, in the database and in the export', async () => {
      await append(Array.from({ length: 2_200 }, (_, index) => by(index % 2 ? ALICE : 'bob')))
      await exportDue(upkeep(T0), true)
      await endRetention(upkeep(T0 + HOUR_MS), T0 + 1)
      await order(T0)
      const broken = {
        head: (name: string) => harness.bucket.head(name),
        get: harness.bucket.get.bind(harness.bucket),
        async put(...args: Parameters<ExportBucket['put']>) {
          await harness.bucket.put(...args)
          throw new Error('the Worker was ended')
        },
      } as unknown as ExportBucket
      await expect(carryOutErasures(upkeep(T0 + HOUR_MS, broken))).rejects.toThrow('ended')
      // An unfinished erasure delays retention.
      await endRetention(upkeep(T0 + HOUR_MS), T0 + 1)
      await carryOut(T0 + HOUR_MS)
      expect(await everything()).not.toContain(ALICE)
      const { results } = await sql('SELECT rows, done_ms FROM audit_erasures').all()
      expect(results).toEqual([{ rows: 1_100, done_ms: T0 + HOUR_MS }])
      expect(await verify()).toMatchObject({ ok: true })
    })

    test('is counted once when several runs carry it out at the same moment', async () => {
      await append(Array.from({ length: 1_200 }, (_, index) => by(index % 2 ? ALICE : 'bob')))
      await exportDue(upkeep(T0), true)
      await endRetention(upkeep(T0 + HOUR_MS), T0 + 1)
      const { id } = await order(T0)
      const runs = [1, 2, 3].map(() =>
        carryOutErasures(upkeep(T0 + HOUR_MS)).catch(() => undefined),
      )
      await Promise.all(runs)
      await carryOut(T0 + HOUR_MS)
      expect(await orders(T0).find(id)).toMatchObject({ state: 'done', rows: 600 })
      expect(await everything()).not.toContain(ALICE)
      expect(await verify()).toMatchObject({ ok: true, unexplained: 0 })
    })

    test('reaches an object that is written while it runs', async () => {
      await append(Array.from({ length: 1_100 }, () => by(ALICE)))
      let erased = false
      const slow = {
        head: (name: string) => harness.bucket.head(name),
        get: harness.bucket.get.bind(harness.bucket),
        async put(...args: Parameters<ExportBucket['put']>) {
          // The rows were read; now they are erased, in the database and in the existing export.
          if (!erased) {
            erased = true
            await order(T0)
            await carryOut(T0)
          }
          return harness.bucket.put(...args)
        },
      } as unknown as ExportBucket
      await exportDue(upkeep(T0, slow), true)
      expect(erased).toBe(true)
      expect(await names()).not.toEqual([])
      expect(await everything()).not.toContain(ALICE)
    })

    onEngines?.('is not done while the export is unavailable', async () => {
      await append(Array.from({ length: 1_100 }, () => by(ALICE)))
      await exportDue(upkeep(T0), true)
      const { id } = await order(T0)
      const without = { ...upkeep(T0), bucket: undefined }
      await expect(carryOutErasures(without)).rejects.toThrow('AUDIT_EXPORT')
      expect(await orders(T0).find(id)).toMatchObject({ state: 'running' })
      await carryOut()
      expect(await orders(T0).find(id)).toMatchObject({ state: 'done', rows: 1_100 })
    })

    onEngines?.('deletes its digests of the subject once no late event can arrive', async () => {
      await order(T0)
      await carryOut(T0)
      const digests = async () =>
        (await sql('SELECT salt, caller_digest, name_digest FROM audit_erasures').all()).results
      await endRetention(upkeep(T0 + 7 * 24 * HOUR_MS), 0)
      expect(Object.values((await digests())[0] ?? {})).not.toContain(null)
      await endRetention(upkeep(T0 + 9 * 24 * HOUR_MS), 0)
      expect(await digests()).toEqual([{ salt: null, caller_digest: null, name_digest: null }])
    })

    onEngines?.('of rows written before commitments existed keeps them in the chain', async () => {
      await appendRows([by('bob'), by(ALICE), by('carol')])
      await toFirstFormat(harness.db)
      expect(await verifyChain(page, undefined)).toMatchObject({ ok: true, events: 3 })
      await sql("UPDATE audit_events SET observed = '[]' WHERE seq = 1").run()
      expect((await verifyChain(page, undefined)).findings).toMatchObject([
        { kind: 'changed', seq: 1 },
      ])
      await sql('UPDATE audit_events SET observed = NULL WHERE seq = 1').run()
      await order(T0)
      await carryOut(T0)
      expect(await everything()).not.toContain(ALICE)
      expect(await verifyChain(page, undefined)).toMatchObject({
        ok: true,
        erased: 1,
        unexplained: 0,
      })
      await sql("UPDATE audit_events SET reason = 'x' WHERE seq = 3").run()
      // This was the last row of the kind, and the only proof that it existed.
      expect((await verifyChain(page, undefined)).findings).toMatchObject([
        { kind: 'changed', seq: 2 },
        { kind: 'changed', seq: 3 },
      ])
    })
  })
})
