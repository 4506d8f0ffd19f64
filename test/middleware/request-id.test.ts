import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import type { RequestIdVariables } from '../../src/middleware/context.ts'
import { requestIdOf, traceOf } from '../../src/middleware/context.ts'
import { requestId } from '../../src/middleware/request-id.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

const app = new Hono<{ Variables: RequestIdVariables }>()
app.use(requestId())
app.get('/', (c) =>
  c.json({ id: requestIdOf(c), parent: c.get('portcullis.parentRequestId'), trace: traceOf(c) }),
)
app.get('/fetched', () => fetch('data:text/plain,immutable'))
app.get('/throws', () => {
  throw new Error('boom')
})
app.onError((_, c) => c.text('failed', 500))

interface Seen {
  id: string
  parent: string | null
  trace: {
    traceId: string
    spanId: string
    parentSpanId?: string
    isSampled: boolean
    traceparent: string
    tracestate?: string
  }
}

async function see(headers: Record<string, string>): Promise<Seen> {
  const response = await app.request('/', { headers })
  const seen = (await response.json()) as Seen
  expect(response.headers.get('X-Request-Id')).toBe(seen.id)
  return seen
}

describe('requestId', () => {
  test('every request has a new UUIDv7', async () => {
    const ids = await Promise.all(Array.from({ length: 200 }, async () => (await see({})).id))
    for (const id of ids) expect(id).toMatch(UUID_V7)
    expect(new Set(ids).size).toBe(200)
  })

  test("a client's id is kept as the parent and never replaces ours", async () => {
    const seen = await see({ 'X-Request-Id': 'abc.DEF_1-2' })
    expect(seen.parent).toBe('abc.DEF_1-2')
    expect(seen.id).toMatch(UUID_V7)
  })

  test.each(['', 'a b', 'a,b', 'é', '<script>', 'a'.repeat(129)])(
    '%j is not a valid client id [S66]',
    async (id) => {
      expect((await see({ 'X-Request-Id': id })).parent).toBeNull()
    },
  )

  test("without a client's id there is no parent", async () => {
    expect((await see({})).parent).toBeNull()
  })

  test.each(['/fetched', '/throws', '/nowhere'])(
    '%s gets a response with an id too',
    async (path) => {
      expect((await app.request(path)).headers.get('X-Request-Id')).toMatch(UUID_V7)
    },
  )
})

describe('trace context', () => {
  test('the caller’s span and its sampling decision are read', async () => {
    const { trace } = await see({ traceparent: `00-${TRACE_ID}-${PARENT}-00` })
    expect(trace).toMatchObject({ parentSpanId: PARENT, isSampled: false })
    expect(trace.traceparent).toBe(`00-${TRACE_ID}-${trace.spanId}-00`)
    const began = (await see({})).trace
    expect(began).not.toHaveProperty('parentSpanId')
    expect(began.isSampled).toBe(true)
  })

  test("only a ratio of new traces is sampled, and a caller's decision is kept", async () => {
    const none = new Hono<{ Variables: RequestIdVariables }>()
    none.use(requestId({ sampleRatio: 0 }))
    none.get('/', (c) => c.json(traceOf(c)))
    const began = (await (await none.request('/')).json()) as Seen['trace']
    expect(began.isSampled).toBe(false)
    expect(began.traceparent).toMatch(/-00$/)
    const headers = { traceparent: `00-${TRACE_ID}-${PARENT}-01` }
    const continued = (await (await none.request('/', { headers })).json()) as Seen['trace']
    expect(continued.isSampled).toBe(true)
    expect(continued.traceparent).toMatch(/-01$/)
  })

  test.each([0.25, 0.5, 1])(
    'at a ratio of %d the trace id decides whether the trace is sampled',
    async (ratio) => {
      const some = new Hono<{ Variables: RequestIdVariables }>()
      some.use(requestId({ sampleRatio: ratio }))
      some.get('/', (c) => c.json(traceOf(c)))
      const seen = new Set<boolean>()
      for (let request = 0; request < 300; request++) {
        const trace = (await (await some.request('/')).json()) as Seen['trace']
        const isSampled = Number(`0x${trace.traceId.slice(-8)}`) < ratio * 2 ** 32
        expect(trace.isSampled, trace.traceId).toBe(isSampled)
        expect(trace.traceparent).toMatch(isSampled ? /-01$/ : /-00$/)
        seen.add(isSampled)
      }
      expect(seen.size).toBe(ratio === 1 ? 1 : 2)
    },
  )

  test('a valid parent is continued with a new span', async () => {
    const { trace } = await see({
      traceparent: `00-${TRACE_ID}-${PARENT}-01`,
      tracestate: 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
    })
    expect(trace.traceId).toBe(TRACE_ID)
    expect(trace.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`))
    expect(trace.traceparent).not.toContain(PARENT)
    expect(trace.tracestate).toBe('congo=t61rcWkgMzE,rojo=00f067aa0ba902b7')
  })

  test.each([
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `ff-${TRACE_ID}-${PARENT}-01`,
    `00-${TRACE_ID.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE_ID}-${PARENT}-01-more`,
    `00-${TRACE_ID}-${PARENT}`,
    `00-${TRACE_ID}-${PARENT}-0g`,
    `0-${TRACE_ID}-${PARENT}-01`,
    `00-${TRACE_ID}-${PARENT}-01, 00-${TRACE_ID}-${PARENT}-01`,
    'nonsense',
  ])('an invalid parent %s restarts the trace and drops its state', async (traceparent) => {
    const { trace } = await see({ traceparent, tracestate: 'congo=1' })
    expect(trace.traceId).toMatch(/^[0-9a-f]{32}$/)
    expect(trace.traceId).not.toBe(TRACE_ID)
    expect(trace.traceparent).toMatch(new RegExp(`^00-${trace.traceId}-[0-9a-f]{16}-01$`))
    expect(trace.tracestate).toBeUndefined()
  })

  test.each([
    [`cc-${TRACE_ID}-${PARENT}-01`, '01'],
    [`01-${TRACE_ID}-${PARENT}-01-what-the-future-brings`, '01'],
    [`00-${TRACE_ID}-${PARENT}-00`, '00'],
    [`00-${TRACE_ID}-${PARENT}-03`, '03'],
    [`00-${TRACE_ID}-${PARENT}-ff`, '03'],
    [`00-${TRACE_ID}-${PARENT}-fc`, '00'],
  ])('of %s the known fields are read, and sent in our version', async (traceparent, flags) => {
    const { trace } = await see({ traceparent })
    expect(trace.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-${flags}$`))
  })

  const members = (count: number) => Array.from({ length: count }, (_, at) => `k${at}=v`).join(',')
  test.each([
    ['32 members', members(32), members(32)],
    ['33 members', members(33), undefined],
    ['600 characters', `k=${'v'.repeat(598)}`, `k=${'v'.repeat(598)}`],
    ['9,000 characters', `k=${'v'.repeat(9_000)}`, undefined],
    ['unusual white space', 'a=1 ,\tb=2', 'a=1 ,\tb=2'],
  ])('a tracestate of %s is forwarded unmodified or not at all', async (_, tracestate, passed) => {
    const { trace } = await see({ traceparent: `00-${TRACE_ID}-${PARENT}-01`, tracestate })
    expect(trace.tracestate).toBe(passed)
  })

  test('a tracestate without a parent is dropped', async () => {
    expect((await see({ tracestate: 'congo=1' })).trace.tracestate).toBeUndefined()
  })
})
