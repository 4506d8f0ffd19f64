/** What an event records about the caller: enough to explain and to replay the decision. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { eventOfRow } from '../../src/audit/sql/audit-row.ts'
import { serializeEvent } from '../../src/audit/truncate.ts'
import { operators } from '../../src/features/operators/index.ts'
import { plans } from '../../src/features/plans/index.ts'
import { relations } from '../../src/features/relations/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { ISSUER, startGateway, type TestGateway } from '../features/operators/gateway.ts'
import { MODEL } from '../features/operators/relation-model.ts'
import { rowOf } from './earlier-rows.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({
    policy: definePolicy({
      roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
      limits: { plan: plans({ plans: { free: '100/min', pro: '200/min' }, default: 'free' }) },
      relations: relations({ model: MODEL, issuers: [ISSUER] }),
      features: [operators()],
      routes: [
        { method: 'GET', path: '/open', anonymous: true },
        { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['plan'] },
        {
          method: 'GET',
          path: '/orders/:id',
          permission: 'orders:read',
          relation: { object: 'order:{params.id}', relation: 'viewer' },
        },
      ],
    }),
  })
})
afterAll(() => gateway?.close())

async function grantsOf(path: string, token?: string): Promise<AuditEvent['grants']> {
  await gateway.send(
    path,
    token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
  )
  const event = gateway.events.at(-1)
  if (event === undefined) throw new Error('no event')
  expect(auditEventSchema.parse(JSON.parse(serializeEvent(event)))).toEqual(event)
  expect(eventOfRow(rowOf(event))).toEqual(event)
  return event.grants
}

test('roles, scopes, the plan in force and the object of a relation, of allowed and refused requests', async () => {
  const token = await gateway.token({ roles: ['reader', 'x'], scope: 'orders:read other' })
  const known = { roles: ['reader', 'x'], scopes: ['orders:read', 'other'] }
  expect(await grantsOf('/orders', token)).toEqual({ ...known, plan: 'free' })
  expect(await grantsOf('/orders/42', token)).toEqual({
    ...known,
    relation: 'order:42#viewer',
  })
  expect(gateway.events.at(-1)?.reason).toMatch(/^relation_missing/)
  const none = await gateway.token({ roles: [] })
  expect(await grantsOf('/orders', none)).toEqual({ roles: [], scopes: [], plan: 'free' })
})

test('nothing of a caller who is not identified', async () => {
  expect(await grantsOf('/open')).toBeUndefined()
  expect(await grantsOf('/orders')).toBeUndefined()
  expect(await grantsOf('/orders', 'a.b.c')).toBeUndefined()
})

test('are bounded, and say how many names are missing', async () => {
  const roles = Array.from({ length: 60 }, (_, at) => `role-${at}`)
  const grants = await grantsOf('/orders', await gateway.token({ roles }))
  expect(grants?.roles).toHaveLength(51)
  expect(grants?.roles.at(-1)).toBe('…[+10]')
})
