import { describe, expect, test } from 'vitest'
import { createInFlightCount, FULL } from '../../../src/isolate/in-flight.ts'

/** How long a request is counted at least, if it does not leave. */
const LEAST_MS = 28_000

describe('the count of requests in flight', () => {
  test('is exact while every request leaves, over any time', () => {
    const inFlight = createInFlightCount()
    let nowMs = 0
    const slots: number[] = []
    for (let step = 0; step < 2_000; step++) {
      nowMs += (step * 7_919) % 700
      if (step % 3 < 2) slots.push(inFlight.enter(Number.POSITIVE_INFINITY, nowMs))
      else inFlight.leave(slots.shift() ?? FULL)
      if (slots.length > 20) inFlight.leave(slots.shift() ?? FULL)
      expect(inFlight.count()).toBe(slots.length)
    }
  })

  test('drops abandoned requests after a time, and does not subtract them twice', () => {
    const inFlight = createInFlightCount()
    const early = inFlight.enter(10, 0)
    expect(inFlight.enter(1, LEAST_MS - 1)).toBe(FULL)
    const late = inFlight.enter(1, 2 * LEAST_MS)
    expect(late).not.toBe(FULL)
    inFlight.leave(early)
    expect(inFlight.count()).toBe(1)
    inFlight.leave(late)
    expect(inFlight.count()).toBe(0)
  })

  test('tolerates a clock that goes back', () => {
    const inFlight = createInFlightCount()
    const slots = [100_000, 0, 50_000].map((nowMs) => inFlight.enter(10, nowMs))
    for (const slot of slots) inFlight.leave(slot)
    expect(inFlight.count()).toBe(0)
  })

  test('admits up to the limit, and one more for each request that leaves', () => {
    const inFlight = createInFlightCount()
    const first = inFlight.enter(2, 4_000)
    expect(first).not.toBe(FULL)
    expect(inFlight.enter(2, 4_000)).not.toBe(FULL)
    expect(inFlight.enter(2, 4_000)).toBe(FULL)
    expect(inFlight.count()).toBe(2)
    inFlight.leave(first)
    expect(inFlight.enter(2, 4_000)).not.toBe(FULL)
    expect(inFlight.enter(3, 4_000)).not.toBe(FULL)
    expect(inFlight.count()).toBe(3)
  })

  test.each([
    [undefined, 4_000],
    [10, 10],
  ])(
    'counts a request for seven slots after its own, and drops it in the eighth (%s)',
    (slotMs, lengthMs) => {
      const inFlight = createInFlightCount(slotMs)
      const startMs = 1_000 * lengthMs
      const early = inFlight.enter(10, startMs + lengthMs - 1)
      const second = inFlight.enter(10, startMs + lengthMs)
      expect(inFlight.enter(2, startMs + 8 * lengthMs - 1)).toBe(FULL)
      const third = inFlight.enter(2, startMs + 8 * lengthMs)
      expect(third).not.toBe(FULL)
      expect(inFlight.count()).toBe(2)
      // The first request is not subtracted: the third one uses its slot now.
      inFlight.leave(early)
      expect(inFlight.count()).toBe(2)
      inFlight.leave(second)
      inFlight.leave(third)
      expect(inFlight.count()).toBe(0)
    },
  )

  test('drops a request once, however often its slot is reused', () => {
    const inFlight = createInFlightCount(10)
    for (let round = 1; round <= 4; round++) {
      inFlight.enter(10, round * 80)
      expect(inFlight.count(), `round ${round}`).toBe(1)
    }
  })

  test('the shortest time before an abandoned request is dropped is 28 seconds', () => {
    const inFlight = createInFlightCount()
    inFlight.enter(1, 3_999)
    expect(inFlight.enter(1, 3_999 + LEAST_MS)).toBe(FULL)
    expect(inFlight.enter(1, 3_999 + LEAST_MS + 1)).not.toBe(FULL)
  })
})
