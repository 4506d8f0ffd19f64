import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { startD1Audit } from '../../audit/d1-harness.ts'
import { anEvent } from '../../audit/event.ts'
import { prepare } from '../../audit/prepared.ts'
import { storedEvents } from '../../audit/stored.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ISSUER, startGateway, type TestGateway } from './gateway.ts'

const PATIENCE = { timeout: 100_000, interval: 100 }
const ALICE = 'alice@home.example'
const theirs = () => anEvent({ actor: { ...anEvent().actor, issuer: ISSUER, subject: ALICE } })

let redis: TestRedis
let harness: Awaited<ReturnType<typeof startD1Audit>>
let gateway: TestGateway
beforeAll(async () => {
  redis = await startTestRedis()
  harness = await startD1Audit()
  await harness.migrate()
  gateway = await startGateway({ auditDb: harness.db })
})
afterAll(async () => {
  await gateway?.close()
  await harness?.close()
  await redis?.close()
})

const recorded = () => storedEvents(harness.db)
const count = async () => (await recorded()).length

test('an erased subject is removed from the trail and the overflow moments after the order [S66]', async () => {
  await harness.enqueue('audit', [theirs(), anEvent(), theirs()])
  await vi.waitFor(async () => expect(await count()).toBe(3), PATIENCE)
  await gateway.redis.direct.zadd(DEFAULT_KEYS.overflow, 1, JSON.stringify(theirs()))

  const before = gateway.events.length
  const ordered = await gateway.admin('POST', '/audit/erasures', { subject: ALICE, issuer: ISSUER })
  expect(ordered.status, ordered.text).toBe(201)
  expect(ordered.body).toMatchObject({ state: 'pending', rows: 0 })
  expect(ordered.headers.get('cache-control')).toBe('no-store')
  expect(await gateway.redis.direct.zrange(DEFAULT_KEYS.overflow, 0, -1)).toHaveLength(1)
  expect(await gateway.dump()).not.toContain(ALICE)

  // The order is audited without the subject's name. Its event starts the audit Worker.
  const [event] = gateway.events.slice(before)
  expect(event?.change).toEqual({ action: 'audit.erase', target: ordered.body.id })
  expect(JSON.stringify(event)).not.toContain(ALICE)
  await harness.enqueue('audit', [event])
  const erasure = () => gateway.admin('GET', `/audit/erasures/${ordered.body.id}`)
  await vi.waitFor(async () => expect((await erasure()).body.state).toBe('done'), PATIENCE)
  const done = await erasure()
  expect(done.body).toMatchObject({ id: ordered.body.id, rows: 2 })
  expect(done.text).not.toContain(ALICE)
  expect(JSON.stringify(await recorded())).not.toContain(ALICE)
  expect((await gateway.admin('GET', `/audit?subject=${encodeURIComponent(ALICE)}`)).body).toEqual({
    events: [],
  })
  const page = await gateway.admin('GET', '/audit?limit=200')
  expect(page.status, page.text).toBe(200)
  expect(
    page.body.events.filter(({ address }: { address: string }) => address === 'erased'),
  ).toHaveLength(2)
})

test('only an operator with the erase permission can order an erasure [S64]', async () => {
  const body = { subject: 'bob', issuer: ISSUER }
  const auditor = await gateway.token({ sub: 'otto', roles: ['auditor'] })
  expect((await gateway.admin('POST', '/audit/erasures', body, { as: auditor })).status).toBe(403)
  const { results } = await prepare(
    harness.db,
    "SELECT id FROM audit_erasures WHERE subject = 'bob'",
  ).all()
  expect(results).toEqual([])
})

test('an operator cannot erase their own identity [S66]', async () => {
  const own = await gateway.admin('POST', '/audit/erasures', { subject: 'olga', issuer: ISSUER })
  expect(own.status).toBe(422)
  expect(own.body.errors).toMatchObject([{ in: 'body', path: '/subject' }])
  const { results } = await prepare(
    harness.db,
    "SELECT id FROM audit_erasures WHERE subject = 'olga'",
  ).all()
  expect(results).toEqual([])
})

test('an order without an issuer is 422, and an unknown erasure is 404', async () => {
  expect((await gateway.admin('POST', '/audit/erasures', { subject: 'bob' })).status).toBe(422)
  const unknown = await gateway.admin('GET', `/audit/erasures/${crypto.randomUUID()}`)
  expect(unknown.status).toBe(404)
})

test('with a missing or failing database the response is 503 and does not mention the subject [R20]', async () => {
  const none = await startGateway()
  const failing = await startGateway({
    auditDb: {
      prepare: () => ({
        bind: () => ({ run: () => Promise.reject(new Error('D1: secret-detail')) }),
      }),
    } as never,
  })
  try {
    for (const one of [none, failing]) {
      const body = { subject: ALICE, issuer: ISSUER }
      const reply = await one.admin('POST', '/audit/erasures', body)
      expect(reply.status).toBe(503)
      expect(reply.text).not.toMatch(/secret-detail|alice/)
      expect(one.events.at(-1)?.change).toBeUndefined()
    }
  } finally {
    await Promise.all([none.close(), failing.close()])
  }
})
