import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, startWorkerd } from './workerd.ts'

const FIRST_ORDER = '0190f8a0-7c3a-7000-8000-000000000001'
const UNKNOWN_ORDER = '0190f8a0-7c3a-7000-8000-00000000ffff'

let origin: Running
let gateway: Running

beforeAll(async () => {
  origin = await startWorkerd({ entry: 'workers/origin.ts', vars: {} })
  gateway = await startWorkerd({
    entry: 'test/origin/worker.ts',
    vars: { ORIGIN_URL: `http://127.0.0.1:${origin.port}` },
  })
})
afterAll(() => Promise.all([gateway?.stop(), origin?.stop()]))

const caller = {
  'Test-Caller': JSON.stringify({
    issuer: 'https://issuer.test/',
    subject: 'alice',
    roles: ['reader', 'a,b'],
    scopes: [],
  }),
}

async function send(method: string, path: string, body?: unknown) {
  const response = await fetch(`http://127.0.0.1:${gateway.port}${path}`, {
    method,
    headers: { ...caller, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text), response }
}

test('Workers of tests have no globals of Node, as the shipped one', async () => {
  expect((await send('GET', '/globals')).json).toEqual({
    Buffer: 'undefined',
    process: 'undefined',
  })
})

test('the demo origin reports the caller that the gateway named', async () => {
  const { json, response } = await send('GET', '/public/ping')
  expect(json).toEqual({
    pong: true,
    caller: {
      subject: 'alice',
      client: null,
      roles: ['reader', 'a,b'],
      requestId: response.headers.get('X-Request-Id'),
    },
  })
})

test('an order is created, read, listed and deleted', async () => {
  const placed = await send('POST', '/orders', { item: 'lamp', quantity: 2, position: [1, 2, 3] })
  expect(placed.status).toBe(201)
  const { order } = placed.json
  expect(order).toMatchObject({ item: 'lamp', quantity: 2, position: [1, 2, 3], placedBy: 'alice' })
  expect(placed.response.headers.get('Location')).toBe(`/orders/${order.id}`)
  expect((await send('GET', `/orders/${order.id}`)).json.order).toEqual(order)
  expect((await send('GET', '/orders')).json.orders).toContainEqual(order)
  expect((await send('DELETE', `/orders/${order.id}`)).status).toBe(204)
  expect((await send('DELETE', `/orders/${order.id}`)).status).toBe(404)
  expect((await send('GET', `/orders/${order.id}`)).status).toBe(404)
})

test('one order exists initially, and an unknown one is 404', async () => {
  const first = await send('GET', `/orders/${FIRST_ORDER}`)
  expect([first.status, first.json.order.id]).toEqual([200, FIRST_ORDER])
  expect((await send('GET', `/orders/${UNKNOWN_ORDER}`)).status).toBe(404)
})

test('pages are linked by cursor and end', async () => {
  for (let at = 0; at < 4; at++) await send('POST', '/orders', { item: `item ${at}`, quantity: 1 })
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const { json } = await send('GET', `/orders?limit=2${cursor ? `&cursor=${cursor}` : ''}`)
    expect(json.orders.length).toBeLessThanOrEqual(2)
    seen.push(...json.orders.map(({ id }: { id: string }) => id))
    cursor = json.cursor
  } while (cursor !== undefined)
  expect(seen).toHaveLength(5)
  expect(new Set(seen).size).toBe(5)
})

test('a report is accepted', async () => {
  const { status, json } = await send('POST', '/reports', { from: '2026-01-01', to: '2026-02-01' })
  expect(status).toBe(202)
  expect(json.report).toMatchObject({ from: '2026-01-01', to: '2026-02-01', status: 'queued' })
})
