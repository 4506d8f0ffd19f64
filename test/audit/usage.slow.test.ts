/** The usage of API keys, from all stores of the audit trail. */
import { v7 } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createAuditUsage } from '../../src/audit/sql/usage.ts'
import type { UsageDay, UsageRoute } from '../../src/audit/usage.ts'
import { startGateway } from '../features/operators/gateway.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { insertEarlierRows } from './earlier-rows.ts'
import { anEvent } from './event.ts'
import { type AuditStores, describeStores } from './harness.ts'
import { prepare } from './prepared.ts'
import { seeded } from './tampering.ts'

const T0 = Date.parse('2026-11-01T00:00:00.000Z')
const DAY_MS = 86_400_000
const DAYS = 10
const OUTCOMES = [
  ['allow', 'ok'],
  ['deny', 'rate_limited:plan-day'],
  ['deny', 'rate_limited:plan-concurrency'],
  ['deny', 'permission_missing:orders:write'],
  ['error', 'redis:timeout'],
] as const
const [ALPHA, BETA, UNUSED] = [v7(), v7(), v7()]
const { actor } = anEvent()

/** Random events of two keys, and of callers without a key. */
function randomEvents(count: number): readonly AuditEvent[] {
  const random = seeded(20_261_125)
  const one = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item
  return Array.from({ length: count }, () => {
    const [decision, reason] = one(OUTCOMES)
    const key = one([ALPHA, BETA, undefined])
    return anEvent({
      time: new Date(T0 + Math.floor(random() * DAYS * DAY_MS)).toISOString(),
      decision,
      reason,
      actor: { ...actor, key },
    })
  })
}

/** Counts as the contract says, one event at a time. */
function expected(events: readonly AuditEvent[], key: string, since: number, until: number) {
  const days: Record<string, UsageDay> = {}
  for (const { time, decision, reason, actor } of events) {
    const at = Date.parse(time)
    if (actor.key !== key || at < since || at >= until) continue
    const day = time.slice(0, 10)
    days[day] ??= { day, requests: 0, allowed: 0, refused: 0, errors: 0, reasons: {} }
    const of = days[day]
    of.requests += 1
    of[({ allow: 'allowed', deny: 'refused', error: 'errors' } as const)[decision]] += 1
    if (decision !== 'allow') of.reasons[reason] = (of.reasons[reason] ?? 0) + 1
  }
  return Object.values(days).sort((a, b) => (a.day < b.day ? -1 : 1))
}

describeStores((start) => {
  let redis: TestRedis
  let stores: AuditStores
  let usage: ReturnType<typeof createAuditUsage>
  const events = randomEvents(600)
  beforeAll(async () => {
    redis = await startTestRedis()
    stores = await start({ originUrl: 'http://127.0.0.1:9', redis })
    await stores.migrate()
    usage = createAuditUsage(stores.db)
    const options = { seal: createCheckpointSealer([]), nowMs: T0 }
    // A quarter is in rows of a version before the blocks.
    for (let at = 0; at < events.length; at += 150)
      await (at === 0 ? insertEarlierRows : insertAuditEvents)(
        stores.db,
        events.slice(at, at + 150),
        options,
      )
  })
  afterAll(async () => {
    await stores?.close()
    await redis?.close()
  })

  test('counts requests by day, decision and reason, for one key', async () => {
    const all = { sinceMs: T0, untilMs: T0 + DAYS * DAY_MS }
    for (const key of [ALPHA, BETA]) {
      const days = await usage.usageOf(key, all)
      expect(days).toEqual(expected(events, key, all.sinceMs, all.untilMs))
      expect(days).toHaveLength(DAYS)
    }
    expect(await usage.usageOf(UNUSED, all)).toEqual([])
  })

  test('includes the beginning of the period, and excludes its end', async () => {
    const times = events
      .filter(({ actor }) => actor.key === ALPHA)
      .map(({ time }) => Date.parse(time))
      .sort((a, b) => a - b)
    const [sinceMs = 0, untilMs = 0] = [times[40], times[140]]
    const days = await usage.usageOf(ALPHA, { sinceMs, untilMs })
    expect(days).toEqual(expected(events, ALPHA, sinceMs, untilMs))
    expect(days?.reduce((sum, { requests }) => sum + requests, 0)).toBe(100)
  })

  test('is bounded: a period with more than 10,000 days and reasons has no result', async () => {
    const { db } = stores
    const row = { time_ms: 0, request_id: '', trace_id: '', method: 'GET', decision: 'deny' }
    const rest = { status: 403, limits: '[]', durations_ms: '{}', address: 'unknown' }
    const rows = Array.from({ length: 10_001 }, (_, at) => {
      const own = { id: `r:${at}`, reason: `r:${at}`, api_key: 'many' }
      return { ...row, ...rest, ...own }
    })
    await db.run(
      db.dialect.insert({
        table: 'audit_events',
        columns: Object.keys(rows[0] ?? {}),
        integers: new Set(['time_ms', 'status']),
        rows: rows.map((one) => Object.values(one)),
      }),
    )
    expect(await usage.usageOf('many', { sinceMs: 0, untilMs: 1 })).toBeUndefined()
    await prepare(stores.db, 'DELETE FROM audit_events WHERE id = ?').bind('r:0').run()
    const [day] = (await usage.usageOf('many', { sinceMs: 0, untilMs: 1 })) ?? []
    expect(day).toMatchObject({ day: '1970-01-01', requests: 10_000, refused: 10_000 })
    await prepare(stores.db, 'DELETE FROM audit_events WHERE api_key = ?').bind('many').run()
  })

  test('of a customer adds up to its requests, by key and route, page by page, ended keys included', async () => {
    const gateway = await startGateway({ auditDb: stores.db })
    try {
      const [tenant, reference] = [`t-${v7()}`, `C-${v7()}`]
      const sent: Record<string, Record<string, number>> = {}
      const secrets: string[] = []
      for (const [at, paths] of [['/orders'], ['/few', '/few', '/absent'], []].entries()) {
        const described = { name: `k${at}`, subject: `s${at}`, roles: ['reader'], tenant }
        const metadata = { reference }
        const { body: key } = await gateway.admin('POST', '/api-keys', { ...described, metadata })
        secrets.push(key.apiKey)
        for (const path of paths) await gateway.call(key.apiKey, 1, path)
        if (at < 2) await gateway.admin('DELETE', `/api-keys/${key.id}`)
        sent[key.id] = {}
      }
      const [ended = ''] = secrets
      // Refused by an isolate that has not cached the key.
      await gateway.call(ended, 0)
      for (const { actor, route } of gateway.events) {
        const counts = sent[actor.key ?? '']
        if (counts !== undefined) counts[String(route)] = (counts[String(route)] ?? 0) + 1
      }
      const total = Object.values(sent).flatMap((counts) => Object.values(counts))
      // A request without a route is refused before its key is read.
      expect(total.reduce((sum, requests) => sum + requests, 0)).toBe(4)
      const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
      await insertAuditEvents(stores.db, gateway.events, options)

      for (const query of [`tenant=${tenant}`, `reference=${reference}`]) {
        const found: typeof sent = {}
        let cursor = ''
        do {
          const { body, status, text } = await gateway.admin(
            'GET',
            `/usage?${query}&limit=2${cursor}`,
          )
          expect(status, text).toBe(200)
          for (const key of body.keys) {
            expect(found[key.id]).toBeUndefined()
            const routes = key.routes.map((of: UsageRoute) => {
              expect(of.requests).toBe(of.allowed + of.refused + of.errors)
              return [String(of.route), of.requests]
            })
            found[key.id] = Object.fromEntries(routes)
          }
          cursor = body.cursor === undefined ? '' : `&cursor=${body.cursor}`
        } while (cursor !== '')
        expect(found).toEqual(sent)
      }
      const { body, text } = await gateway.admin('GET', `/usage?tenant=${tenant}&limit=50`)
      const statuses = body.keys.map(({ status }: { status: string }) => status)
      expect(statuses).toEqual(['active', 'revoked', 'revoked'])
      expect(text).not.toContain(ended)
      for (const wrong of ['', '?limit=51&tenant=x', '?tenant=x&since=2999-01-01T00:00:00Z'])
        expect((await gateway.admin('GET', `/usage${wrong}`)).status).toBe(422)
    } finally {
      await gateway.close()
    }
  })

  test('of a key is what an operator reads after real requests, revoked or not', async () => {
    const gateway = await startGateway({ auditDb: stores.db })
    try {
      const described = { name: 'nightly', subject: 'reports', roles: ['reader'], tenant: 'acme' }
      const { body: key } = await gateway.admin('POST', '/api-keys', described)
      for (const path of ['/few', '/few', '/few', '/orders', '/absent'])
        await gateway.call(key.apiKey, 1, path)
      await gateway.call(await gateway.token(), 1)
      const ofTenant = async (tenant: string) =>
        (
          await gateway.admin('GET', `/api-keys/${key.id}/usage`, undefined, {
            as: await gateway.token({ sub: 'op', roles: ['operator'], tenant }),
          })
        ).status
      expect([await ofTenant('acme'), await ofTenant('other')]).toEqual([200, 404])
      await gateway.admin('DELETE', `/api-keys/${key.id}`)
      await gateway.call(key.apiKey, 1)
      const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
      await insertAuditEvents(stores.db, gateway.events, options)
      const { body, status, text } = await gateway.admin('GET', `/api-keys/${key.id}/usage`)
      expect(status, text).toBe(200)
      expect(body.days).toEqual([
        {
          day: new Date().toISOString().slice(0, 10),
          requests: 5,
          allowed: 3,
          refused: 2,
          errors: 0,
          reasons: { 'rate_limited:few': 1, 'token_revoked:token': 1 },
        },
      ])
      expect(Date.parse(body.until) - Date.parse(body.since)).toBe(30 * DAY_MS)
      const wrong = '?since=2026-11-02T00:00:00Z&until=2026-11-02T01:00:00%2B01:00'
      const refused = await gateway.admin('GET', `/api-keys/${key.id}/usage${wrong}`)
      expect([refused.status, refused.body.errors[0]?.path]).toEqual([422, '/since'])
    } finally {
      await gateway.close()
    }
  })
})
