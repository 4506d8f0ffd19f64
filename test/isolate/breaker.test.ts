import { describe, expect, test } from 'vitest'
import { Unavailable } from '../../src/errors.ts'
import type { AlarmLine } from '../../src/isolate/breakers.ts'
import { type BreakerTransition, createBreakers } from '../../src/isolate/breakers.ts'
import {
  createCircuitBreaker,
  DEFAULT_FAILURES,
  FIRST_PERIOD_MS,
  MAX_PERIOD_MS,
  passiveBreakerOf,
} from '../../src/isolate/circuit-breaker.ts'

const START_MS = 1_700_000_000_000

/** Creates a breaker without jitter, with a clock that the test sets. */
function build({ random = () => 0 }: { readonly random?: () => number } = {}) {
  let nowMs = START_MS
  const alarms: AlarmLine[] = []
  const transitions: string[] = []
  const breakers = createBreakers({ now: () => nowMs, alarm: (line) => alarms.push(line) })
  breakers.onTransition(({ breaker, from, to, fault }: BreakerTransition) => {
    expect(breaker.state()).toBe(to)
    transitions.push(`${from} > ${to}${fault === undefined ? '' : ` (${fault})`}`)
  })
  const options = { watch: breakers.watch, now: () => nowMs, random }
  const breaker = createCircuitBreaker({ name: 'redis', ...options })

  function fail(times = 1) {
    for (let count = 0; count < times; count++) breaker.failed(breaker.enter(), 'timeout')
  }
  function refusal(): Unavailable {
    try {
      breaker.enter()
    } catch (error) {
      return error as Unavailable
    }
    throw new Error('the breaker let the call through')
  }
  return {
    breaker,
    breakers,
    alarms,
    transitions,
    fail,
    refusal,
    pass(ms: number) {
      nowMs += ms
    },
  }
}

describe('a breaker', () => {
  test('opens with the fifth consecutive failure, and refuses at once with the last fault [R02]', () => {
    const { breaker, fail, refusal, transitions } = build()
    fail(DEFAULT_FAILURES - 1)
    expect(breaker.state()).toBe('closed')
    breaker.failed(breaker.enter(), 'unreachable')
    expect(breaker.state()).toBe('open')
    expect(refusal()).toBeInstanceOf(Unavailable)
    expect(refusal()).toMatchObject({
      dependency: 'redis',
      fault: 'unreachable',
      shortCircuited: true,
    })
    expect(refusal().retryAfterSeconds).toBe(1)
    expect(transitions).toEqual(['closed > open (unreachable)'])
  })

  test('lets a probe through after its period, although the clock was set back by a day', () => {
    const { breaker, fail, refusal, pass } = build()
    fail(DEFAULT_FAILURES)
    expect(refusal()).toBeInstanceOf(Unavailable)
    pass(-86_400_000)
    expect(() => breaker.enter()).not.toThrow()
    expect(refusal().retryAfterSeconds).toBe(1)
    pass(FIRST_PERIOD_MS)
    expect(() => breaker.enter()).not.toThrow()
  })

  test('does not open if successes arrive in between', () => {
    const { breaker, fail } = build()
    for (let round = 0; round < 20; round++) {
      fail(DEFAULT_FAILURES - 1)
      breaker.enter()
      breaker.succeeded()
    }
    expect(breaker.state()).toBe('closed')
  })

  test('does not count a late call as a failure if concurrent calls were answered', () => {
    const { breaker } = build()
    const late = Array.from({ length: 50 }, () => breaker.enter())
    breaker.enter()
    breaker.succeeded()
    for (const entry of late) breaker.failed(entry, 'timeout')
    expect(breaker.state()).toBe('closed')
  })

  test('lets one call through after its period, and closes for all after a success [R02, R32]', () => {
    const { breaker, fail, refusal, pass, transitions } = build()
    fail(DEFAULT_FAILURES)
    pass(FIRST_PERIOD_MS - 1)
    refusal()
    pass(1)
    breaker.enter()
    expect(breaker.state()).toBe('half_open')
    for (let count = 0; count < 100; count++) refusal()
    breaker.succeeded()
    expect(breaker.state()).toBe('closed')
    for (let count = 0; count < 100; count++) breaker.enter()
    expect(transitions.slice(1)).toEqual(['open > half_open (timeout)', 'half_open > closed'])
  })

  test('probes after half a second at first, then at most every five seconds', () => {
    const { breaker, fail, refusal, pass } = build()
    fail(DEFAULT_FAILURES)
    for (const periodMs of [
      500,
      500,
      500,
      500,
      1_000,
      2_000,
      4_000,
      MAX_PERIOD_MS,
      MAX_PERIOD_MS,
    ]) {
      expect(refusal().retryAfterSeconds).toBe(Math.ceil(periodMs / 1000))
      pass(periodMs - 1)
      refusal()
      pass(1)
      fail()
      expect(breaker.state()).toBe('open')
    }
  })

  test('shortens periods at random by up to half, so that isolates do not probe together', () => {
    const { breaker, fail, refusal, pass } = build({ random: () => 0.999_999 })
    fail(DEFAULT_FAILURES)
    pass(FIRST_PERIOD_MS / 2 - 1)
    refusal()
    pass(1.1)
    breaker.enter()
    expect(breaker.state()).toBe('half_open')
  })

  test('replaces a lost probe after one period', () => {
    const { breaker, fail, refusal, pass } = build()
    fail(DEFAULT_FAILURES)
    pass(FIRST_PERIOD_MS)
    const lost = breaker.enter()
    pass(FIRST_PERIOD_MS - 1)
    refusal()
    pass(1)
    breaker.enter()
    // This result is outdated: another call is the probe by now.
    breaker.failed(lost, 'timeout')
    expect(breaker.state()).toBe('half_open')
    breaker.succeeded()
    expect(breaker.state()).toBe('closed')
  })

  test('counts probes slower than their period as failures, and sends them less and less often', () => {
    const { breaker, fail, pass } = build()
    fail(DEFAULT_FAILURES)
    /** Probes in progress and the times when they fail. */
    const slow: { readonly entry: number; readonly atMs: number }[] = []
    let probes = 0
    for (let ms = 0; ms < 60_000; ms += 50) {
      pass(50)
      while (slow[0] !== undefined && slow[0].atMs <= ms)
        breaker.failed(slow.shift()?.entry ?? 0, 'timeout')
      try {
        slow.push({ entry: breaker.enter(), atMs: ms + 5_000 })
        probes += 1
      } catch {
        // The call is refused.
      }
    }
    expect(probes).toBeLessThan(20)
    expect(probes).toBeGreaterThan(10)
  })

  test('is not extended by calls from before it opened, and closes after a success of one', () => {
    const { breaker, fail, refusal, pass } = build()
    const early = Array.from({ length: 100 }, () => breaker.enter())
    fail(DEFAULT_FAILURES)
    pass(FIRST_PERIOD_MS / 2)
    for (const entry of early) breaker.failed(entry, 'timeout')
    expect(refusal().retryAfterSeconds).toBe(1)
    breaker.succeeded()
    expect(breaker.state()).toBe('closed')
  })

  test('starts anew after it has closed: five failures, half a second', () => {
    const { breaker, fail, refusal, pass } = build()
    fail(DEFAULT_FAILURES)
    for (let probes = 0; probes < 3; probes++) {
      pass(MAX_PERIOD_MS)
      fail()
    }
    pass(MAX_PERIOD_MS)
    breaker.enter()
    breaker.succeeded()
    fail(DEFAULT_FAILURES - 1)
    expect(breaker.state()).toBe('closed')
    fail()
    refusal()
    pass(FIRST_PERIOD_MS)
    breaker.enter()
  })

  test.each([0, 0.25, 0.5, 0.75, 0.99])(
    'of a dependency that flaps each second, uses every up phase (%d) [R04]',
    (first) => {
      let chance = first
      const random = () => {
        chance = (chance * 7.13 + 0.37) % 1
        return chance
      }
      const { breaker, pass } = build({ random })
      let served = 0
      // 60 s, 100 requests a second: up in even seconds, down in odd seconds.
      for (let request = 0; request < 6_000; request++) {
        const isUp = Math.floor(request / 100) % 2 === 0
        try {
          const entry = breaker.enter()
          if (isUp) {
            breaker.succeeded()
            served++
          } else breaker.failed(entry, 'unreachable')
        } catch (error) {
          expect(error).toBeInstanceOf(Unavailable)
        }
        pass(10)
      }
      // The next probe is at most half a second away, and 0.19 s on average.
      expect(served).toBeGreaterThan(0.7 * 3_000)
    },
  )
})

describe('a passive breaker', () => {
  test('is refused while the breaker is not closed, and neither opens, probes nor closes it', () => {
    const { breaker, fail, pass } = build()
    const passiveBreaker = passiveBreakerOf(breaker)
    for (let count = 0; count < 50; count++)
      passiveBreaker.failed(passiveBreaker.enter(), 'timeout')
    expect(breaker.state()).toBe('closed')
    fail(DEFAULT_FAILURES)
    expect(() => passiveBreaker.enter()).toThrow(Unavailable)
    pass(10 * MAX_PERIOD_MS)
    expect(() => passiveBreaker.enter()).toThrow(Unavailable)
    passiveBreaker.succeeded()
    expect(breaker.state()).toBe('open')
  })
})

describe('the log of a breaker [R05]', () => {
  test('logs when it opens, once a minute while requests are refused, and when it closes [R05]', () => {
    const { breaker, alarms, fail, refusal, pass } = build()
    fail(DEFAULT_FAILURES)
    for (let second = 0; second < 150; second++) {
      for (let request = 0; request < 20; request++) {
        try {
          breaker.failed(breaker.enter(), 'timeout')
        } catch {
          // The call is refused as expected.
        }
      }
      pass(1_000)
    }
    pass(MAX_PERIOD_MS)
    breaker.enter()
    breaker.succeeded()
    const down = { alarm: 'dependency_down', dependency: 'redis', fault: 'timeout' }
    expect(alarms).toEqual([
      { ...down, seconds: 0 },
      { ...down, seconds: 60 },
      { ...down, seconds: 120 },
      { alarm: 'dependency_back', dependency: 'redis', seconds: 155 },
    ])
    expect(() => refusal()).toThrow('let the call through')
  })

  test('logs once a minute for a flapping dependency too [R05]', () => {
    const { breaker, alarms, fail, pass } = build()
    for (let second = 0; second < 120; second += 2) {
      fail(DEFAULT_FAILURES)
      pass(FIRST_PERIOD_MS)
      breaker.enter()
      breaker.succeeded()
      pass(1_000)
    }
    const kinds = alarms.map(({ alarm }) => alarm)
    expect(kinds).toEqual([
      ...['dependency_down', 'dependency_back'],
      ...['dependency_down', 'dependency_back'],
    ])
  })

  test('names the dependency', () => {
    const { breakers, alarms } = build()
    const breaker = createCircuitBreaker({
      name: 'origin',
      target: 'GET /orders',
      watch: breakers.watch,
    })
    for (let count = 0; count < DEFAULT_FAILURES; count++)
      breaker.failed(breaker.enter(), 'unreachable')
    expect(alarms).toMatchObject([{ dependency: 'origin', target: 'GET /orders' }])
    expect(breakers.list.map(({ name, target }) => [name, target])).toEqual([
      ['redis', undefined],
      ['origin', 'GET /orders'],
    ])
  })
})
