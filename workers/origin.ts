/** The demo origin: a small orders API that trusts the gateway and does not check tokens. */
import { Hono } from 'hono'
import { v7 as uuidv7 } from 'uuid'

interface Order {
  readonly id: string
  readonly item: string
  readonly quantity: number
  readonly position?: readonly number[]
  /** The subject that placed the order: `X-Auth-Subject`, which the gateway sets. */
  readonly placedBy: string
}

/** An order that exists in every new isolate, for examples: `GET /orders/<this>`. */
const FIRST_ORDER_ID = '0190f8a0-7c3a-7000-8000-000000000001'
/** Above this number, the oldest orders are deleted, to bound the memory. */
const MAX_ORDERS = 1_000
const DEFAULT_PAGE = 20

/** Orders are kept in memory: each isolate has its own, and they end with it. */
const orders = new Map<string, Order>([
  [FIRST_ORDER_ID, { id: FIRST_ORDER_ID, item: 'book', quantity: 1, placedBy: 'bob' }],
])

const app = new Hono()

/**
 * Returns the caller's identity from the gateway's headers. Every response contains it, so that a
 * developer can see what reached the origin.
 */
const callerOf = (headers: Headers) => ({
  subject: headers.get('X-Auth-Subject'),
  client: headers.get('X-Auth-Client'),
  roles: headers.get('X-Auth-Roles')?.split(',').map(decodeURIComponent) ?? [],
  requestId: headers.get('X-Request-Id'),
})

app.get('/public/ping', (c) => c.json({ pong: true, caller: callerOf(c.req.raw.headers) }))

app.get('/orders', (c) => {
  const limit = Number(c.req.query('limit') ?? DEFAULT_PAGE)
  const cursor = c.req.query('cursor')
  const all = [...orders.values()]
  const start = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1
  const page = all.slice(start, start + limit)
  const next = start + limit < all.length ? { cursor: page.at(-1)?.id } : {}
  return c.json({ orders: page, ...next, caller: callerOf(c.req.raw.headers) })
})

app.get('/orders/:id', (c) => {
  const order = orders.get(c.req.param('id').toLowerCase())
  if (order === undefined) return c.json({ error: 'no such order' }, 404)
  return c.json({ order, caller: callerOf(c.req.raw.headers) })
})

app.post('/orders', async (c) => {
  const caller = callerOf(c.req.raw.headers)
  const { item, quantity, position } = await c.req.json<Omit<Order, 'id' | 'placedBy'>>()
  const placedBy = caller.subject ?? 'anonymous'
  const order = { id: uuidv7(), item, quantity, ...(position && { position }), placedBy }
  orders.set(order.id, order)
  for (const id of orders.keys()) {
    if (orders.size <= MAX_ORDERS) break
    if (id !== FIRST_ORDER_ID) orders.delete(id)
  }
  return c.json({ order, caller }, 201, { Location: `/orders/${order.id}` })
})

app.delete('/orders/:id', (c) => {
  const found = orders.delete(c.req.param('id').toLowerCase())
  return found ? c.body(null, 204) : c.json({ error: 'no such order' }, 404)
})

app.get('/orders/:id/invoice', (c) => {
  const order = orders.get(c.req.param('id').toLowerCase())
  if (order === undefined) return c.json({ error: 'no such order' }, 404)
  const invoice = { order: order.id, lines: [{ item: order.item, quantity: order.quantity }] }
  return c.json({ invoice, caller: callerOf(c.req.raw.headers) })
})

app.post('/orders/:id/approval', (c) => {
  const caller = callerOf(c.req.raw.headers)
  const id = c.req.param('id').toLowerCase()
  if (!orders.has(id)) return c.json({ error: 'no such order' }, 404)
  return c.json({ approval: { order: id, by: caller.subject }, caller })
})

app.post('/reports', async (c) => {
  const { from, to } = await c.req.json<{ from: string; to: string }>()
  const report = { id: uuidv7(), from, to, orders: orders.size, status: 'queued' }
  return c.json({ report, caller: callerOf(c.req.raw.headers) }, 202)
})

app.notFound((c) => c.json({ error: 'no such resource' }, 404))
app.onError((_, c) => c.json({ error: 'internal error' }, 500))

export default app
