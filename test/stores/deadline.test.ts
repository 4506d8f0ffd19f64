import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  BURST_CALLS,
  BURST_STRETCH,
  createDeadlines,
  type Deadlines,
  SILENT_BURST_STRETCH,
} from '../../src/stores/upstash/deadline.ts'

const MS = 250

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const burst = (deadlines: Deadlines) => Array.from({ length: BURST_CALLS }, () => deadlines.start())

describe('a deadline', () => {
  test('passes after its time, with a TimeoutError', () => {
    const { signal } = createDeadlines(MS).start()
    vi.advanceTimersByTime(MS - 1)
    expect(signal.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(signal.aborted).toBe(true)
    expect((signal.reason as Error).name).toBe('TimeoutError')
  })

  test('is not stretched beyond a second and a half in a burst, or beyond itself', () => {
    for (const [ms, longestMs] of [
      [100, 600],
      [1_000, 1_500],
      [4_000, 4_000],
    ] as const) {
      const deadlines = createDeadlines(ms)
      const [first, ...others] = burst(deadlines)
      vi.advanceTimersByTime(ms / 2)
      others[0]?.end(true)
      vi.advanceTimersByTime(longestMs - ms / 2 - 1)
      expect(first?.signal.aborted, String(ms)).toBe(false)
      vi.advanceTimersByTime(1)
      expect(first?.signal.aborted, String(ms)).toBe(true)
    }
  })

  test('does not count the time for which the isolate stood still', () => {
    const { signal } = createDeadlines(MS).start()
    vi.advanceTimersByTime(MS / 2)
    vi.setSystemTime(Date.now() + 3 * MS)
    vi.advanceTimersByTime(MS / 2 - 1)
    expect(signal.aborted).toBe(false)
    vi.advanceTimersByTime(2)
    expect(signal.aborted).toBe(true)
  })

  test('tells at its end whether the isolate ran while it lasted', () => {
    const deadlines = createDeadlines(MS)
    const [punctual, late, stopped] = [deadlines.start(), deadlines.start(), deadlines.start()]
    expect(punctual.end(false)).toBe(true)
    vi.setSystemTime(Date.now() + MS / 2)
    vi.advanceTimersByTime(MS / 2)
    expect(late.end(false)).toBe(true)
    vi.setSystemTime(Date.now() + MS)
    vi.advanceTimersByTime(MS / 2)
    expect(stopped.end(false)).toBe(false)
  })

  test('passes in the end, however long the isolate stood still', () => {
    const { signal } = createDeadlines(MS).start()
    vi.setSystemTime(Date.now() + BURST_STRETCH * MS)
    vi.advanceTimersByTime(MS)
    expect(signal.aborted).toBe(true)
  })

  test('never passes once it has ended', () => {
    const deadline = createDeadlines(MS).start()
    deadline.end(true)
    vi.advanceTimersByTime(100 * MS)
    expect(deadline.signal.aborted).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is stretched for every call of a burst', () => {
    const deadlines = createDeadlines(MS)
    const calls = burst(deadlines)
    vi.advanceTimersByTime(MS / 2)
    deadlines.start().end(true)
    vi.advanceTimersByTime((BURST_STRETCH - 0.5) * MS - 1)
    expect(calls.filter(({ signal }) => signal.aborted)).toEqual([])
    vi.advanceTimersByTime(1)
    expect(calls.filter(({ signal }) => !signal.aborted)).toEqual([])
  })

  test('is stretched a little only for a burst that nobody answers', () => {
    const calls = burst(createDeadlines(MS))
    vi.advanceTimersByTime(SILENT_BURST_STRETCH * MS - 1)
    expect(calls.some(({ signal }) => signal.aborted)).toBe(false)
    vi.advanceTimersByTime(1)
    expect(calls.every(({ signal }) => signal.aborted)).toBe(true)
  })

  test('is not stretched while the dependency is silent, and is again after an answer', () => {
    const deadlines = createDeadlines(MS)
    deadlines.start()
    vi.advanceTimersByTime(MS)
    const silent = burst(deadlines)
    vi.advanceTimersByTime(MS)
    expect(silent.every(({ signal }) => signal.aborted)).toBe(true)
    for (const call of silent) call.end(false)
    deadlines.start().end(true)
    const alive = burst(deadlines)
    vi.advanceTimersByTime(MS)
    expect(alive.some(({ signal }) => signal.aborted)).toBe(false)
  })

  test('ends for a whole burst once one of it has met silence', () => {
    const deadlines = createDeadlines(MS)
    const calls = burst(deadlines)
    vi.advanceTimersByTime(MS / 2)
    const later = deadlines.start()
    vi.advanceTimersByTime(BURST_STRETCH * MS)
    expect(calls.every(({ signal }) => signal.aborted)).toBe(true)
    expect(later.signal.aborted).toBe(true)
  })

  test('calls of requests that the platform has ended do not count as a burst for ever', () => {
    const deadlines = createDeadlines(MS)
    burst(deadlines)
    // Their timers died with their requests.
    vi.clearAllTimers()
    vi.advanceTimersByTime(2 * BURST_STRETCH * MS + 1)
    const { signal } = deadlines.start()
    vi.advanceTimersByTime(MS)
    expect(signal.aborted).toBe(true)
  })
})
