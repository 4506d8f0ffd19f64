/** The filters of the audit log, over all stores of the trail. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditQuerySchema } from '../../src/audit/log.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import { type AuditStores, describeStores } from './harness.ts'

const { actor } = anEvent()
const QUOTED = `say "hi" ' \\ %_`
const EVENTS: Readonly<Record<string, AuditEvent>> = {
  plain: anEvent(),
  address: anEvent({ address: '2001:db8:1:2::/64' }),
  client: anEvent({ actor: { ...actor, client: `web' OR 1=1 --` } }),
  tenant: anEvent({ actor: { ...actor, tenant: 'umbrella' } }),
  refused: anEvent({ decision: 'deny', status: 422, reason: 'invalid_input:body/items/0/price' }),
  tool: anEvent({ call: { method: 'tools/call', name: 'remove_book' } }),
  quoted: anEvent({ call: { method: 'tools/call', name: QUOTED } }),
  list: anEvent({ call: { method: 'tools/list' } }),
  ban: anEvent({ change: { action: 'ban.create', target: 'tools/call' } }),
  bans: anEvent({ change: { action: 'bans.create', target: 'ban.create' } }),
  lift: anEvent({ change: { action: 'ban.delete', target: '1' } }),
}

describeStores((start) => {
  let redis: TestRedis
  let stores: AuditStores
  beforeAll(async () => {
    redis = await startTestRedis()
    stores = await start({ originUrl: 'http://127.0.0.1:9', redis })
    await stores.migrate()
    const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
    await insertAuditEvents(stores.db, Object.values(EVENTS), options)
  })
  afterAll(async () => {
    await stores?.close()
    await redis?.close()
  })

  /** Returns the names of the events that a query finds. */
  async function found(query: Record<string, string>): Promise<readonly (string | undefined)[]> {
    const { events } = await createAuditLog(stores.db).query(auditQuerySchema.parse(query))
    const nameOf = ({ id }: AuditEvent) =>
      Object.entries(EVENTS).find(([, event]) => event.id === id)?.[0]
    return events.map(nameOf).sort()
  }

  test('find events by address, client, tenant, status, tool and change, and nothing else', async () => {
    expect(await found({ address: '2001:db8:1:2::/64' })).toEqual(['address'])
    expect(await found({ client: `web' OR 1=1 --` })).toEqual(['client'])
    expect(await found({ tenant: 'umbrella' })).toEqual(['tenant'])
    expect(await found({ status: '422' })).toEqual(['refused'])
    expect(await found({ reason: 'invalid_input' })).toEqual(['refused'])
    expect(await found({ reason: 'invalid_input:body/items/0/price' })).toEqual(['refused'])
    expect(await found({ tool: 'remove_book' })).toEqual(['tool'])
    expect(await found({ tool: QUOTED })).toEqual(['quoted'])
    expect(await found({ tool: 'remove' })).toEqual([])
    expect(await found({ tool: '%' })).toEqual([])
    expect(await found({ change: 'ban.create' })).toEqual(['ban'])
    expect(await found({ change: 'ban' })).toEqual(['ban', 'lift'])
    expect(await found({ change: 'ban', status: '422' })).toEqual([])
    expect(await found({ client: 'web', status: '200', limit: '200' })).toHaveLength(9)
  })

  test('refuse what no event can have', () => {
    for (const query of [
      { status: '42' },
      { status: 'ok' },
      { change: 'Ban' },
      { change: 'ban.create.x' },
      { change: '%' },
      { tool: '' },
      { address: '' },
      { client: '' },
      { tenant: '' },
    ])
      expect(auditQuerySchema.safeParse(query).success, JSON.stringify(query)).toBe(false)
  })
})
