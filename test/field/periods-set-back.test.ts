/** Periods in which something is refused, skipped or left to another request end after the clock was set back. */
import { Hono } from 'hono'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createAuthenticationFailures } from '../../src/access/abuse/authentication-failures.ts'
import { createViolations } from '../../src/access/abuse/violations.ts'
import { BATCH_OPEN_MS, createBatches } from '../../src/audit/batch.ts'
import { createAuditQueue } from '../../src/audit/queue/audit-queue.ts'
import { createAfterResponse } from '../../src/isolate/after-response.ts'
import { createBreakers } from '../../src/isolate/breakers.ts'
import { createCircuitBreaker } from '../../src/isolate/circuit-breaker.ts'
import { createInFlightCount, FULL } from '../../src/isolate/in-flight.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { readBodyBytes } from '../../src/middleware/validate.ts'
import { NOW_MS } from '../access/tokens/signer.ts'

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
]

afterEach(() => {
  vi.useRealTimers()
})

describe.each(STEPS)('after the clock was set back by %s', (_, stepMs) => {
  it.each(PERIODS)('%s has ended', async (_name, begin) => {
    const clock = { nowMs: NOW_MS }
    const isHeld = await begin(clock)
    clock.nowMs += 100
    expect(isHeld()).toBe(true)
    clock.nowMs -= stepMs
    expect(isHeld()).toBe(false)
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
