import { afterEach, beforeEach, expect, test } from 'vitest'
import { COOL_DOWN_MS, createSpanExporter } from '../../../src/features/otlp/exporter.ts'
import type { Span } from '../../../src/features/otlp/span.ts'
import { attributesOf, startCollector } from './collector.ts'

const MAX_SPANS = 512
const GATHER_MS = 2_000

const span = (different: Partial<Span> = {}): Span => ({
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  parentSpanId: undefined,
  tracestate: undefined,
  kind: 'server',
  name: 'GET /orders',
  startMs: 1_800_000_000_001,
  endMs: 1_800_000_000_013,
  attributes: {},
  isError: false,
  ...different,
})

let collector: Awaited<ReturnType<typeof startCollector>>
beforeEach(async () => {
  collector = await startCollector()
})
afterEach(() => collector.close())

/** An exporter with a timer that the test controls. */
function exporter(headers: Record<string, string> = {}) {
  const tally = { exported: 0, dropped: 0 }
  const background: Promise<unknown>[] = []
  const clock = { nowMs: 1_800_000_000_000 }
  let wake: (() => void)[] = []
  const { export: send } = createSpanExporter({
    url: `${collector.url}/v1/traces`,
    headers,
    tally,
    now: () => clock.nowMs,
    sleep: () => new Promise((done) => wake.push(done)),
  })
  return {
    tally,
    clock,
    send: (spans: readonly Span[]) => send(spans, (promise) => void background.push(promise)),
    background,
    /** Ends the request that collects the spans. */
    kill() {
      wake = []
      background.length = 0
    },
    async pass() {
      clock.nowMs += GATHER_MS
      for (const done of wake.splice(0)) done()
      await Promise.all(background.splice(0))
    },
  }
}

test('spans of two seconds are exported in one call, in the format of OTLP', async () => {
  const { send, pass, tally, background } = exporter({ authorization: 'Bearer x' })
  send([
    span({
      parentSpanId: 'b7ad6b7169203331',
      tracestate: 'a=1',
      attributes: {
        'http.response.status_code': 503,
        'http.route': undefined,
        'url.scheme': 'https',
      },
      isError: true,
    }),
  ])
  for (let count = 1; count < 100; count++) send([span({ kind: 'internal', name: 'admit' })])
  expect(background).toHaveLength(1)
  await pass()

  expect(collector.received).toHaveLength(1)
  const [call] = collector.received
  expect(call?.url).toBe('/v1/traces')
  expect(call?.headers).toMatchObject({
    'content-type': 'application/json',
    authorization: 'Bearer x',
  })
  expect(call?.spans).toHaveLength(100)
  expect(call?.spans[0]).toEqual({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    parentSpanId: 'b7ad6b7169203331',
    traceState: 'a=1',
    name: 'GET /orders',
    kind: 2,
    startTimeUnixNano: '1800000000001000000',
    endTimeUnixNano: '1800000000013000000',
    attributes: [
      { key: 'http.response.status_code', value: { intValue: '503' } },
      { key: 'url.scheme', value: { stringValue: 'https' } },
    ],
    status: { code: 2 },
  })
  expect(call?.spans[1]).toMatchObject({ kind: 1, name: 'admit', attributes: [], status: {} })
  expect(call?.spans[1]).not.toHaveProperty('parentSpanId')
  expect(attributesOf(call?.spans[0] as never)).toEqual({
    'http.response.status_code': 503,
    'url.scheme': 'https',
  })
  expect(tally).toEqual({ exported: 100, dropped: 0 })
})

test('an isolate holds at most 512 spans, and counts those that it drops [R19]', async () => {
  const { send, pass, tally } = exporter()
  for (let count = 0; count < MAX_SPANS + 88; count++) send([span()])
  await pass()
  expect(collector.received[0]?.spans).toHaveLength(MAX_SPANS)
  expect(tally).toEqual({ exported: MAX_SPANS, dropped: 88 })
})

test.each([
  ['an error', { status: 503, body: 'secret words of a collector' }],
  ['a redirect', { status: 307, body: '' }],
])(
  'a refused export is dropped and counted, and no export follows for ten seconds: %s',
  async (_, answer) => {
    const { send, pass, tally, clock } = exporter()
    collector.setAnswer(answer)
    send([span(), span()])
    await pass()
    expect(tally).toEqual({ exported: 0, dropped: 2 })
    send([span()])
    await pass()
    expect(collector.received).toHaveLength(1)
    expect(tally).toEqual({ exported: 0, dropped: 3 })
    collector.setAnswer({ status: 200, body: '{}' })
    clock.nowMs += COOL_DOWN_MS
    send([span()])
    await pass()
    expect(tally).toEqual({ exported: 1, dropped: 3 })
  },
)

test('an unreachable collector loses spans, and has no other effect', async () => {
  const { send, pass, tally } = exporter()
  await collector.close()
  send([span()])
  await pass()
  expect(tally).toEqual({ exported: 0, dropped: 1 })
})

test('spans that the collector reports as rejected do not count as exported', async () => {
  const { send, pass, tally } = exporter()
  collector.setAnswer({ status: 200, body: '{"partialSuccess":{"rejectedSpans":"2"}}' })
  send([span(), span(), span()])
  await pass()
  expect(tally).toEqual({ exported: 1, dropped: 2 })
})

test('if the collecting request has ended, a later request exports its spans', async () => {
  const { send, pass, kill, background, clock } = exporter()
  send([span({ name: 'first' })])
  kill()
  send([span({ name: 'second' })])
  expect(background).toHaveLength(0)
  clock.nowMs += 10_000
  send([span({ name: 'third' })])
  await pass()
  expect(collector.received[0]?.spans.map(({ name }) => name)).toEqual(['first', 'second', 'third'])
})
