import { describe, expect, test } from 'vitest'
import { createInFlightCount, FORGOTTEN_AFTER_MS, FULL } from '../../src/isolate/in-flight.ts'

describe('the count of waiting requests', () => {
  test('is exact while every request leaves, over any time', () => {
    const waiting = createInFlightCount()
    let nowMs = 0
    const slots: number[] = []
    for (let step = 0; step < 2_000; step++) {
      nowMs += (step * 7_919) % 700
      if (step % 3 < 2) slots.push(waiting.enter(Number.POSITIVE_INFINITY, nowMs))
      else waiting.leave(slots.shift() ?? FULL)
      if (slots.length > 20) waiting.leave(slots.shift() ?? FULL)
      expect(waiting.count()).toBe(slots.length)
    }
  })

  test('drops abandoned requests after a time, and does not subtract them twice', () => {
    const waiting = createInFlightCount()
    const early = waiting.enter(10, 0)
    expect(waiting.enter(1, FORGOTTEN_AFTER_MS - 1)).toBe(FULL)
    const late = waiting.enter(1, 2 * FORGOTTEN_AFTER_MS)
    expect(late).not.toBe(FULL)
    waiting.leave(early)
    expect(waiting.count()).toBe(1)
    waiting.leave(late)
    expect(waiting.count()).toBe(0)
  })

  test('tolerates a clock that goes back', () => {
    const waiting = createInFlightCount()
    const slots = [100_000, 0, 50_000].map((nowMs) => waiting.enter(10, nowMs))
    for (const slot of slots) waiting.leave(slot)
    expect(waiting.count()).toBe(0)
  })

  test('admits up to the limit, and one more for each request that leaves', () => {
    const waiting = createInFlightCount()
    const first = waiting.enter(2, 4_000)
    expect(first).not.toBe(FULL)
    expect(waiting.enter(2, 4_000)).not.toBe(FULL)
    expect(waiting.enter(2, 4_000)).toBe(FULL)
    expect(waiting.count()).toBe(2)
    waiting.leave(first)
    expect(waiting.enter(2, 4_000)).not.toBe(FULL)
    expect(waiting.enter(3, 4_000)).not.toBe(FULL)
    expect(waiting.count()).toBe(3)
  })

  test.each([
    [undefined, 4_000],
    [10, 10],
  ])(
    'counts a request for seven slots after its own, and drops it in the eighth (%s)',
    (slotMs, lengthMs) => {
      const waiting = createInFlightCount(slotMs)
      const startMs = 1_000 * lengthMs
      const early = waiting.enter(10, startMs + lengthMs - 1)
      const second = waiting.enter(10, startMs + lengthMs)
      expect(waiting.enter(2, startMs + 8 * lengthMs - 1)).toBe(FULL)
      const third = waiting.enter(2, startMs + 8 * lengthMs)
      expect(third).not.toBe(FULL)
      expect(waiting.count()).toBe(2)
      // The first request is not subtracted: the third one uses its slot now.
      waiting.leave(early)
      expect(waiting.count()).toBe(2)
      waiting.leave(second)
      waiting.leave(third)
      expect(waiting.count()).toBe(0)
    },
  )

  test('drops a request once, however often its slot is reused', () => {
    const waiting = createInFlightCount(10)
    for (let round = 1; round <= 4; round++) {
      waiting.enter(10, round * 80)
      expect(waiting.count(), `round ${round}`).toBe(1)
    }
  })

  test('the shortest time before an abandoned request is dropped is 28 seconds', () => {
    expect(FORGOTTEN_AFTER_MS).toBe(28_000)
  })
})
