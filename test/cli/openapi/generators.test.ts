/** Documents that FastAPI 0.165 and @nestjs/swagger 12.0 generated. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { override } from '../../../src/features/openapi-routes/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { policyTester } from '../../../src/testing/index.ts'
import { DOCUMENTS, importFile, messagesOf } from './import.ts'

async function testerOf(document: string) {
  const imported = await importFile(join(DOCUMENTS, document))
  const limits: Record<string, '100/min'> = {}
  const policy = definePolicy({
    roles: { all: ['*'] },
    limits,
    routes: override(imported.module.routes, { 'GET /health': { anonymous: true } }),
  })
  const tester = policyTester(policy)
  const status = async (line: string, body?: unknown) =>
    (await tester.request(line, { as: { roles: ['all'] }, body })).status
  return { ...imported, tester, status }
}

describe('FastAPI', () => {
  const ORDER = {
    customer: 'alice',
    lines: [{ sku: '123e4567-e89b-12d3-a456-426614174000', quantity: 1, price: 9.99 }],
    payment: { kind: 'card', number: '4111111111111111' },
  }

  test('every operation has a route, and scopes are permissions', async () => {
    const { operations, module, notes } = await testerOf('fastapi.json')
    expect(module.routes).toHaveLength(operations)
    const permissions = module.routes.map(({ path, permission }) => `${path} ${permission}`)
    expect(permissions).toContain('/orders/:order_id orders:read')
    expect(messagesOf(notes, 'approximated')).toEqual([])
    expect(messagesOf(notes, 'unmapped')).toEqual([])
  })

  test('the gateway decides as the models say', async () => {
    const { status, tester } = await testerOf('fastapi.json')
    expect(await status('POST /orders', ORDER)).toBe(200)
    const [line] = ORDER.lines
    const refused = [
      { ...ORDER, lines: [] },
      { ...ORDER, lines: [{ ...line, price: 0.005 }] },
      { ...ORDER, lines: [{ ...line, bundle: [{ sku: 'x' }] }] },
      { ...ORDER, payment: { kind: 'card', iban: 'x' } },
      { ...ORDER, payment: { kind: 'cash' } },
      { ...ORDER, shipTo: { street: 'a', floor: 2 } },
      { ...ORDER, position: [1] },
      { ...ORDER, labels: { a: 1 } },
    ]
    expect(await Promise.all(refused.map((body) => status('POST /orders', body)))).toEqual(
      refused.map(() => 422),
    )
    const more = { shipTo: null, due: '2024-02-29', position: [1, 2], labels: { a: 'b' } }
    expect(await status('POST /orders', { ...ORDER, ...more })).toBe(200)
    expect(await status('GET /orders?limit=100&status=open&since=2024-02-29T12:00:00Z')).toBe(200)
    expect(await status('GET /orders?limit=101')).toBe(422)
    expect(await status('GET /orders/0')).toBe(422)
    expect(await status('PUT /orders/1/note')).toBe(200)
    expect(await status('PUT /orders/1/note', { street: '' })).toBe(422)
    expect((await tester.request('GET /orders')).status).toBe(401)
    expect((await tester.request('GET /health')).status).toBe(200)
  })
})

describe('NestJS', () => {
  const PET = {
    name: 'Rex',
    size: 'large',
    age: 3,
    owner: { name: 'Bob' },
    details: { kind: 'dog', weight: 20 },
  }

  test('every operation has a route, and an extension sets a permission', async () => {
    const { operations, module, notes } = await testerOf('nestjs.json')
    expect(module.routes).toHaveLength(operations)
    expect(module.routes.at(-1)).toMatchObject({ method: 'DELETE', permission: 'pets:remove' })
    expect(messagesOf(notes, 'unmapped')).toEqual([])
  })

  test('the gateway decides as the classes say', async () => {
    const { status } = await testerOf('nestjs.json')
    const accepted = [PET, { ...PET, owner: null, children: [PET], tags: ['a'] }]
    const refused = [
      { ...PET, size: 'medium' },
      { ...PET, age: 1.5 },
      { ...PET, details: { kind: 'dog', weight: 81 } },
      { ...PET, tags: ['a', 'a'] },
      { ...PET, owner: { name: 'Bob', email: 'no' } },
      { ...PET, children: [{}] },
    ]
    const statuses = (bodies: readonly unknown[]) =>
      Promise.all(bodies.map((body) => status('POST /pets', body)))
    expect(await statuses(accepted)).toEqual([200, 200])
    expect(await statuses(refused)).toEqual(refused.map(() => 422))
    expect(await status('PATCH /pets/1', { age: 4 })).toBe(200)
    expect(await status('GET /pets?page=1&size=small')).toBe(200)
    expect(await status('GET /pets?size=medium')).toBe(422)
  })
})
