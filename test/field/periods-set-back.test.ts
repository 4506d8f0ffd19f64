/** Periods in which something is refused, skipped or left to another request end after the clock was set back. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createAuthenticationFailures } from '../../src/access/abuse/authentication-failures.ts'
import { createViolations } from '../../src/access/abuse/violations.ts'
import { issuerRules } from '../../src/access/tokens/issuer-rules.ts'
import { BATCH_OPEN_MS, createBatches } from '../../src/audit/batch.ts'
import { createAuditQueue } from '../../src/audit/queue/audit-queue.ts'
import { Unavailable } from '../../src/errors.ts'
import { authorizedOrigin } from '../../src/features/credentials/authorized-origin.ts'
import { createIssuerCall } from '../../src/features/introspection/issuer-call.ts'
import { retriedOrigin } from '../../src/features/origins/retried-origin.ts'
import { createSpanExporter } from '../../src/features/otlp/exporter.ts'
import type { Span } from '../../src/features/otlp/span.ts'
import { createAfterResponse } from '../../src/isolate/after-response.ts'
import { createBreakers } from '../../src/isolate/breakers.ts'
import { createCircuitBreaker } from '../../src/isolate/circuit-breaker.ts'
import { createInFlightCount, FULL } from '../../src/isolate/in-flight.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { readBodyBytes } from '../../src/middleware/validate.ts'
import type { OriginRequest } from '../../src/origin/origin.ts'
import { openSpool } from '../../src/runtimes/node/audit/spool/spool.ts'
import { spoolingQueue } from '../../src/runtimes/node/audit/spool/spooling-queue.ts'
import { createSigner, issuerOf, NOW_MS, outcome } from '../access/tokens/signer.ts'

const STEPS = [
  ['a minute', 60_000],
  ['a day', 86_400_000],
] as const

type Clock = { nowMs: number }
/** Begins a period. Returns a function that reports whether the period still continues, and may begin it again. */
type Begin = (clock: Clock) => (() => unknown) | Promise<() => unknown>

const ADDRESS = '192.0.2.1'
const ignore = () => {}
const counts = {
  count: async () => ({ count: 1, resetSeconds: 60, banSeconds: 0, quietMs: 5_000 }),
}

function violationsOn(clock: Clock) {
  const counter = { count: vi.fn(counts.count) }
  const rule = {
    ...{ violations: 5, windowSeconds: 60, banSeconds: 300 },
    ...({ mode: 'enforce', refuses: 'all' } as const),
  }
  return { counter, ...createViolations({ rule: rule as never, counter, now: () => clock.nowMs }) }
}

const failuresOn = (clock: Clock) =>
  createAuthenticationFailures({
    limit: 1,
    windowSeconds: 60,
    counter: { count: () => new Promise(ignore) },
    now: () => clock.nowMs,
  })

const kept = await createSigner('ES256', 'kept')
const REQUEST = {
  ...{ method: 'GET', path: '/', search: '', headers: new Map(), body: null, timeoutMs: 1_000 },
  incoming: new Request('https://gateway.test/'),
} as unknown as OriginRequest

const PERIODS: readonly (readonly [string, Begin])[] = [
  [
    'the time for which a ban is not looked up',
    (clock) => {
      const { counter, learn, banSeconds } = violationsOn(clock)
      learn(ADDRESS, 300)
      return () => {
        const before = counter.count.mock.calls.length
        banSeconds(ADDRESS, 'credential', ignore)
        return counter.count.mock.calls.length === before
      }
    },
  ],
  [
    'the time for which violations of a limit are not counted',
    (clock) => {
      const { counter, record } = violationsOn(clock)
      const by = { kind: 'subject', issuer: 'i', tenant: undefined, value: 'alice' } as const
      const isSkipped = () => {
        const before = counter.count.mock.calls.length
        record({ of: 'limit', by, from: ADDRESS }, ignore)
        return counter.count.mock.calls.length === before
      }
      isSkipped()
      return isSkipped
    },
  ],
  [
    'the refusal of an address with failed authentications',
    (clock) => {
      const { record, waitSeconds } = failuresOn(clock)
      record(ADDRESS, ignore)
      return () => waitSeconds(ADDRESS) !== undefined
    },
  ],
  [
    'the refusal of the tokens of a signer from an address',
    (clock) => {
      const { record, waitSecondsOf } = failuresOn(clock)
      const signer = { issuer: 'i', subject: 'alice' }
      record(ADDRESS, ignore, signer)
      return () => waitSecondsOf(ADDRESS, () => signer) !== undefined
    },
  ],
  [
    'the place of a request that ended without notice',
    (clock) => {
      const { enter } = createInFlightCount()
      enter(1, clock.nowMs)
      return () => enter(1, clock.nowMs) === FULL
    },
  ],
  [
    'the pause between two alarms',
    (clock) => {
      const alarm = vi.fn()
      const { watch } = createBreakers({ now: () => clock.nowMs, alarm })
      const { refused } = watch({ name: 'redis', target: undefined, state: () => 'open' })
      refused()
      return () => {
        const before = alarm.mock.calls.length
        refused()
        return alarm.mock.calls.length === before
      }
    },
  ],
  [
    'the pause of a circuit breaker',
    (clock) => {
      const { enter, failed } = createCircuitBreaker({
        ...{ name: 'redis', failures: 1, now: () => clock.nowMs, random: () => 0 },
      })
      failed(enter(), 'timeout')
      return () => {
        try {
          enter()
          return false
        } catch {
          return true
        }
      }
    },
  ],
  [
    'the lease of work after a response',
    (clock) => {
      const afterResponse = createAfterResponse({
        ...{ delayMs: 0, leaseMs: 10_000, now: () => clock.nowMs },
        sleep: () => new Promise(ignore),
        work: async () => {},
      })
      afterResponse(ignore)
      return () => {
        const waitUntil = vi.fn()
        afterResponse(waitUntil)
        return waitUntil.mock.calls.length === 0
      }
    },
  ],
  [
    'the lease of an open batch of audit events',
    (clock) => {
      const { add } = createBatches()
      add('{}', clock.nowMs)
      return () => add('{}', clock.nowMs).send === undefined
    },
  ],
  [
    'the lease of a batch of audit events that is being sent',
    (clock) => {
      const { add, take, overdue } = createBatches()
      const { hold } = add('{}', clock.nowMs)
      if (hold !== undefined) take(hold, clock.nowMs + BATCH_OPEN_MS)
      return () => overdue(clock.nowMs) === undefined
    },
  ],
  [
    'the pause of a queue that failed',
    async (clock) => {
      const { send, takesEvents } = createAuditQueue({
        queue: { sendBatch: () => Promise.reject(new Error('down')) },
        ...{ now: () => clock.nowMs, sleep: async () => {}, warn: ignore },
      })
      await send(['{}'], 0)
      return () => !takesEvents()
    },
  ],
  [
    'the refusal of a token by its issuer',
    async (clock) => {
      const ask = vi.fn(async () => undefined)
      const call = createIssuerCall({
        rules: issuerRules(issuerOf([kept.publicJwk])),
        locator: { locate: async () => 'https://idp.test/introspect' },
        request: ask,
        maxAgeSeconds: 60,
        watch: () => ({ changed: ignore, refused: ignore }),
        now: () => clock.nowMs,
      })
      const isRefusedAtOnce = async () => {
        const before = ask.mock.calls.length
        expect(await outcome(() => call('opaque'))).toBe('token_rejected:inactive')
        return ask.mock.calls.length === before
      }
      await isRefusedAtOnce()
      return isRefusedAtOnce
    },
  ],
  [
    'the pause after a failed export of spans',
    async (clock) => {
      const exporter = createSpanExporter({
        ...{ url: 'http://127.0.0.1:1/', now: () => clock.nowMs, sleep: async () => {} },
      })
      const span = { kind: 'server', attributes: {}, startMs: 0, endMs: 0 } as unknown as Span
      const isPaused = async () => {
        const works: Promise<unknown>[] = []
        exporter.export([span], (work) => works.push(work))
        await Promise.all(works)
        return works.length === 0
      }
      await isPaused()
      return isPaused
    },
  ],
  [
    'the pause between two lines about a refused credential',
    async (clock) => {
      const log = vi.spyOn(console, 'error').mockReturnValue(undefined)
      const wrap = authorizedOrigin({
        credential: { header: 'x-key', apply: async (request) => request },
        now: () => clock.nowMs,
      })
      const origin = wrap({ send: async () => new Response(null, { status: 401 }) })
      const isQuiet = async () => {
        log.mockClear()
        expect(await outcome(() => origin.send(REQUEST))).toBe('origin:unauthorized')
        return log.mock.calls.length === 0
      }
      await isQuiet()
      return isQuiet
    },
  ],
  [
    'the pause of a queue with a spool',
    async (clock) => {
      const sendBatch = vi.fn(() => Promise.reject(new Error('down')))
      const queue = spoolingQueue({
        ...{ queue: { sendBatch }, spool: async () => {}, now: () => clock.nowMs },
      })
      const isPaused = async () => {
        const before = sendBatch.mock.calls.length
        await queue.sendBatch([{ body: '{}', contentType: 'text' }])
        return sendBatch.mock.calls.length === before
      }
      await isPaused()
      return isPaused
    },
  ],
]

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe.each(STEPS)('after the clock was set back by %s', (_, stepMs) => {
  it.each(PERIODS)('%s has ended', async (_name, begin) => {
    const clock = { nowMs: NOW_MS }
    const isHeld = await begin(clock)
    clock.nowMs += 100
    expect(await isHeld()).toBe(true)
    clock.nowMs -= stepMs
    expect(await isHeld()).toBe(false)
  })

  it('an address is refused anew after further failures', () => {
    const clock = { nowMs: NOW_MS }
    const { record, waitSecondsOf } = failuresOn(clock)
    const signer = { issuer: 'i', subject: 'alice' }
    record(ADDRESS, ignore, signer)
    clock.nowMs -= stepMs
    record(ADDRESS, ignore, signer)
    expect(waitSecondsOf(ADDRESS, () => signer)).toBe(60)
  })

  it('a request that ended meanwhile is not counted twice', () => {
    const clock = { nowMs: NOW_MS }
    const { enter, leave, count } = createInFlightCount()
    const slot = enter(2, clock.nowMs)
    clock.nowMs -= stepMs
    enter(2, clock.nowMs)
    leave(slot)
    expect(count()).toBe(1)
  })

  it('the end of an outage is reported, with no negative time', () => {
    const clock = { nowMs: NOW_MS }
    const alarm = vi.fn()
    const { watch } = createBreakers({ now: () => clock.nowMs, alarm })
    const { changed } = watch({ name: 'redis', target: undefined, state: () => 'open' })
    changed('open', 'timeout')
    clock.nowMs -= stepMs
    changed('open', 'timeout')
    changed('closed', undefined)
    expect(alarm.mock.calls.map(([line]) => [line.alarm, line.seconds])).toEqual([
      ['dependency_down', 0],
      ['dependency_down', 0],
      ['dependency_back', 0],
    ])
  })

  it('no attempt at an origin gets more time than the request', async () => {
    const clock = { nowMs: NOW_MS }
    const given: number[] = []
    const origin = {
      async send({ timeoutMs }: OriginRequest): Promise<Response> {
        given.push(timeoutMs)
        clock.nowMs -= stepMs
        throw new Unavailable('origin', 'unreachable')
      },
    }
    const now = () => clock.nowMs
    const apply = async (request: OriginRequest) => {
      clock.nowMs -= stepMs
      return request
    }
    const authorized = authorizedOrigin({ credential: { header: 'x-key', apply }, now })(origin)
    for (const tried of [retriedOrigin({ origin, now }), authorized])
      expect(await outcome(() => tried.send(REQUEST))).toBe('origin:unreachable')
    expect(given).toEqual([1_000, 1_000, 1_000])
  })

  it('a spool whose directory was not usable is opened again', async () => {
    const clock = { nowMs: NOW_MS }
    vi.spyOn(console, 'error').mockReturnValue(undefined)
    const parent = mkdtempSync(join(tmpdir(), 'spool-'))
    const directory = join(parent, 'spool')
    writeFileSync(directory, '')
    const spool = openSpool({
      ...{ directory, maxBytes: 2 ** 24, now: () => clock.nowMs },
      connect: () => ({ queue: { sendBatch: async () => {} }, close: ignore }),
    })
    await expect(spool.append(['{}'])).rejects.toThrow()
    rmSync(directory)
    await expect(spool.append(['{}'])).rejects.toThrow()
    clock.nowMs -= stepMs
    await spool.append(['{}'])
    await spool.close()
    rmSync(parent, { recursive: true })
  })

  it('a request with a slow body is admitted again', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS })
    const app = new Hono<{ Variables: { 'portcullis.heldUpSinceMs'?: number } }>()
    app.post('/', limitBody({ maxBytes: 100 }), async (c) => {
      await readBodyBytes(c as never)
      return c.json(c.get('portcullis.heldUpSinceMs') ?? null)
    })
    const body = new ReadableStream(
      {
        pull(controller) {
          vi.setSystemTime(NOW_MS - stepMs)
          controller.enqueue(new TextEncoder().encode('x'))
          controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit
    const response = await app.request('/', init)
    expect(await response.json()).toBe(NOW_MS)
  })
})
