import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { PUBLIC_URL, policy, startGateway, type TestGateway } from '../operators/gateway.ts'
import { attributesOf, type CollectedSpan, startCollector } from './collector.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

let gateway: TestGateway
let collector: Awaited<ReturnType<typeof startCollector>>
beforeAll(async () => {
  gateway = await startGateway()
  collector = await startCollector()
})
afterAll(async () => {
  await collector.close()
  await gateway.close()
})
afterEach(() => void collector.received.splice(0))

/**
 * Sends requests to a gateway that traces, and resolves to the spans that the collector received.
 */
async function spansOf(
  variables: Record<string, string>,
  requests: readonly (readonly [path: string, headers: Record<string, string>, method?: string])[],
): Promise<readonly CollectedSpan[]> {
  const { received } = collector
  const env = { ...gateway.env, OTLP_ENDPOINT: collector.url, ...variables }
  const app = createGateway(composeServices(env, policy, WORKERS), policy)
  for (const [path, headers, method = 'GET'] of requests)
    await (await app.fetch(new Request(PUBLIC_URL + path, { headers, method }))).text()
  const before = received.length
  for (let polls = 0; polls < 1_000 && received.length === before; polls++)
    await new Promise((done) => setTimeout(done, 20))
  return received.flatMap(({ spans }) => spans)
}
const server = (spans: readonly CollectedSpan[]) => spans.filter(({ kind }) => kind === 2)

describe('the span of a request', () => {
  test('belongs to its caller’s trace, follows the conventions for HTTP, and contains its stages', async () => {
    const token = await gateway.token({ sub: 'rita-the-reader', roles: ['reader'] })
    const spans = await spansOf({ OTLP_HEADERS: 'x-key=a%20b,x-team=t' }, [
      [
        '/orders?secret=hush',
        {
          Authorization: `Bearer ${token}`,
          traceparent: `00-${TRACE_ID}-${PARENT}-01`,
          tracestate: 'congo=1',
          'CF-Connecting-IP': '192.0.2.9',
        },
      ],
    ])
    const [span] = server(spans)
    expect(span).toMatchObject({
      traceId: TRACE_ID,
      parentSpanId: PARENT,
      traceState: 'congo=1',
      name: 'GET /orders',
      status: {},
    })
    expect(attributesOf(span as CollectedSpan)).toEqual({
      'http.request.method': 'GET',
      'http.route': '/orders',
      'http.response.status_code': 200,
      'url.scheme': 'https',
      'portcullis.request_id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'portcullis.decision': 'allow',
      'portcullis.reason': 'ok',
    })
    const stages = spans.filter(({ kind }) => kind === 1)
    for (const stage of stages) {
      expect(stage).toMatchObject({ traceId: TRACE_ID, parentSpanId: span?.spanId })
      expect(BigInt(stage.startTimeUnixNano)).toBeGreaterThanOrEqual(
        BigInt(span?.startTimeUnixNano ?? 0),
      )
      expect(BigInt(stage.endTimeUnixNano)).toBeGreaterThan(BigInt(stage.startTimeUnixNano))
    }
    expect(stages.map(({ name }) => name)).toContain('admit')
    const [call] = collector.received
    expect(call?.headers).toMatchObject({ 'x-key': 'a b', 'x-team': 't' })
    for (const secret of [token, 'hush', 'rita-the-reader', '192.0.2.9'])
      expect(call?.body).not.toContain(secret)
  })

  // https://opentelemetry.io/docs/specs/semconv/http/http-spans/#name
  test('has the name HTTP for a method that the conventions do not know', async () => {
    const headers = { traceparent: `00-${TRACE_ID}-${PARENT}-01` }
    const [span] = server(await spansOf({}, [['/orders', headers, 'PROPFIND']]))
    expect(span?.name).toBe('HTTP')
    expect(attributesOf(span as CollectedSpan)).toMatchObject({ 'http.request.method': '_OTHER' })
  })

  test('is failed for a 5xx response, and not for a mistake of the caller', async () => {
    gateway.redis.setAnswering(false)
    const token = await gateway.token({ roles: ['reader'] })
    const sampled = { traceparent: `00-${TRACE_ID}-${PARENT}-01` }
    const spans = server(
      await spansOf({}, [
        ['/orders', { ...sampled, Authorization: `Bearer ${token}` }],
        ['/orders', sampled],
        ['/nowhere', sampled],
      ]),
    )
    gateway.redis.setAnswering(true)
    const [failed, refused, unknown] = spans
    expect(failed?.status).toEqual({ code: 2 })
    expect(attributesOf(failed as CollectedSpan)).toMatchObject({
      'http.response.status_code': 503,
      'error.type': 'redis:unreachable',
    })
    expect(refused?.status).toEqual({})
    expect(attributesOf(refused as CollectedSpan)).toMatchObject({
      'http.response.status_code': 401,
      'portcullis.decision': 'deny',
      'portcullis.reason': 'missing_token',
    })
    expect(unknown?.name).toBe('GET')
  })
})

describe('sampling', () => {
  const many = (headers: Record<string, string>) =>
    Array.from({ length: 100 }, () => ['/nowhere', headers] as const)

  test('follows the decision of the caller, whatever the ratio is', async () => {
    const [sampled, not] = [
      { traceparent: `00-${TRACE_ID}-${PARENT}-01` },
      { traceparent: `00-${TRACE_ID}-${PARENT}-00` },
    ]
    const spans = server(
      await spansOf({ OTLP_SAMPLE_RATIO: '0' }, [
        ['/nowhere', not],
        ['/nowhere', sampled],
        ['/nowhere', {}],
      ]),
    )
    expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([PARENT])
  })

  test('takes its ratio of the traces that begin here', async () => {
    const spans = server(await spansOf({ OTLP_SAMPLE_RATIO: '0.5' }, many({})))
    // Fewer than 20 heads in 100 tosses of a coin have a probability of 1 in 10^9.
    expect(spans.length).toBeGreaterThan(19)
    expect(spans.length).toBeLessThan(81)
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(spans.length)
    for (const { parentSpanId } of spans) expect(parentSpanId).toBeUndefined()
  })
})
