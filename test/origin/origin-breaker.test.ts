import { describe, expect, test } from 'vitest'
import { Denied, Unavailable } from '../../src/errors.ts'
import { createBreakers } from '../../src/isolate/breakers.ts'
import { DEFAULT_FAILURES, MAX_PERIOD_MS } from '../../src/isolate/circuit-breaker.ts'
import { problemOf } from '../../src/middleware/problem-handler.ts'
import { guardedOrigin } from '../../src/origin/guarded-origin.ts'
import type { OriginRequest } from '../../src/origin/origin.ts'
import type { Fault } from '../../src/problems/reasons.ts'

/** Creates an origin with a scripted behavior, its breakers, and a clock that the test sets. */
function build() {
  let nowMs = 1_700_000_000_000
  let outcome: () => Response = () => new Response('ok')
  let calls = 0
  const breakers = createBreakers({ now: () => nowMs, alarm: () => undefined })
  const origin = guardedOrigin({
    origin: {
      async send() {
        calls++
        return outcome()
      },
    },
    watch: breakers.watch,
    now: () => nowMs,
    random: () => 0,
  })
  const request = (route: string, body: OriginRequest['body'] = null): OriginRequest => ({
    incoming: new Request('http://gateway.test/'),
    headers: new Map<string, string>(),
    body,
    timeoutMs: 1_000,
    route,
  })
  return {
    breakers,
    calls: () => calls,
    answering(next: () => Response) {
      outcome = next
    },
    failing(error: Error) {
      outcome = () => {
        throw error
      }
    },
    pass(ms: number) {
      nowMs += ms
    },
    send: (route = 'GET /a', body?: OriginRequest['body']) => origin.send(request(route, body)),
    failure: (route = 'GET /a', body?: OriginRequest['body']) =>
      origin.send(request(route, body)).then(
        () => expect.unreachable('the call was answered'),
        (error: unknown) => error,
      ),
  }
}

describe('the breaker of a route', () => {
  test.each<[Fault, string, number]>([
    ['unreachable', 'origin_unreachable', 502],
    ['timeout', 'origin_timeout', 504],
  ])(
    '%s: opens, short-circuits with the same error and Retry-After, and closes again [R23, R24]',
    async (fault, code, status) => {
      const { failing, answering, failure, send, calls, pass, breakers } = build()
      failing(new Unavailable('origin', fault))
      for (let count = 0; count < DEFAULT_FAILURES; count++) {
        const problem = problemOf((await failure()) as Error)
        expect(problem).toMatchObject({ code, status })
        expect(problem.headers).toBeUndefined()
      }
      for (let count = 0; count < 50; count++)
        expect(problemOf((await failure()) as Error)).toMatchObject({
          code,
          status,
          headers: { 'Retry-After': '1' },
        })
      expect(calls()).toBe(DEFAULT_FAILURES)
      expect(breakers.list.map(({ target, state }) => [target, state()])).toEqual([
        ['GET /a', 'open'],
      ])
      answering(() => new Response('ok'))
      pass(MAX_PERIOD_MS)
      for (let count = 0; count < 50; count++) expect((await send()).status).toBe(200)
      expect(calls()).toBe(DEFAULT_FAILURES + 50)
    },
  )

  test('affects no other route', async () => {
    const { failing, failure, calls } = build()
    failing(new Unavailable('origin', 'timeout'))
    for (let count = 0; count < 10; count++) await failure('GET /a')
    expect(calls()).toBe(DEFAULT_FAILURES)
    await failure('GET /b')
    await failure('POST /a')
    expect(calls()).toBe(DEFAULT_FAILURES + 2)
  })

  test.each([500, 503, 404])('does not open after a response with status %i', async (status) => {
    const { answering, send, calls } = build()
    answering(() => new Response('', { status }))
    for (let count = 0; count < 50; count++) expect((await send()).status).toBe(status)
    expect(calls()).toBe(50)
  })

  test.each<[Fault]>([['too_large'], ['malformed']])(
    'does not open after a response that is %s: a caller may be able to provoke it',
    async (fault) => {
      const { failing, failure, calls } = build()
      failing(new Unavailable('origin', fault))
      for (let count = 0; count < 50; count++)
        expect(problemOf((await failure()) as Error)).toMatchObject({ status: 502 })
      expect(calls()).toBe(50)
    },
  )

  test('clients that disconnect during every probe do not lock others out [R23]', async () => {
    const { failing, answering, failure, send, calls, pass, breakers } = build()
    failing(new Unavailable('origin', 'timeout'))
    for (let count = 0; count < DEFAULT_FAILURES; count++) await failure()
    pass(MAX_PERIOD_MS)
    failing(new Denied({ code: 'malformed_request', check: 'client_gone' }))
    for (let count = 0; count < 3; count++) expect(await failure()).toBeInstanceOf(Denied)
    expect(calls()).toBe(DEFAULT_FAILURES + 3)
    expect(breakers.list[0]?.state()).toBe('half_open')
    answering(() => new Response('ok'))
    expect((await send()).status).toBe(200)
    expect(breakers.list[0]?.state()).toBe('closed')
    // Neither in the closed nor in the open state does a disconnect change anything.
    failing(new Denied({ code: 'malformed_request', check: 'client_gone' }))
    await failure()
    answering(() => new Response('ok'))
    expect((await send()).status).toBe(200)
  })

  test('does not open after a disconnect, an oversized body or a slow upload', async () => {
    const { failing, failure, calls } = build()
    failing(new Denied({ code: 'malformed_request', check: 'client_gone' }))
    for (let count = 0; count < 50; count++) await failure()
    failing(new Denied({ code: 'payload_too_large', maxBytes: 1 }))
    for (let count = 0; count < 50; count++) await failure()
    failing(new Unavailable('origin', 'timeout'))
    for (let count = 0; count < 50; count++) await failure('POST /a', new ReadableStream())
    expect(calls()).toBe(150)
    for (let count = 0; count < 50; count++) await failure('POST /a', new Uint8Array(1))
    expect(calls()).toBe(150 + DEFAULT_FAILURES)
  })
})
