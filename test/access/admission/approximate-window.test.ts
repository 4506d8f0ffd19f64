import { describe, expect, test } from 'vitest'
import {
  nextAdmissionMs,
  type WindowCounts,
} from '../../../src/access/admission/approximate-window.ts'

/** The limiter's own rule, as its script states it. */
function isCounted(counts: WindowCounts, atMs: number, nowMs: number): boolean {
  const { current, previous, limit, windowMs } = counts
  const sameWindow = Math.floor(atMs / windowMs) === Math.floor(nowMs / windowMs)
  const [before, here] = sameWindow ? [previous, current] : [current, 0]
  return Math.floor((1 - (atMs % windowMs) / windowMs) * before) + here < limit
}

describe('an exhausted limit [R16]', () => {
  const nowMs = 1_700_000_000_000 - (1_700_000_000_000 % 60_000) + 20_000
  const cases: WindowCounts[] = []
  for (const limit of [1, 2, 30, 100, 1000]) {
    for (const previous of [0, 1, limit / 2, limit - 1, limit].map(Math.floor)) {
      // More than the limit is counted if the limit was higher before.
      for (const current of [0, 1, limit / 2, limit - 1, limit, limit * 3].map(Math.floor)) {
        const counts = { current, previous, limit, windowMs: 60_000 }
        if (!isCounted(counts, nowMs, nowMs)) cases.push(counts)
      }
    }
  }

  test.each(cases)('admits again at the time it reports, and not before (%o)', (counts) => {
    const atMs = nextAdmissionMs(counts, nowMs)
    expect(atMs).toBeGreaterThan(nowMs)
    expect(isCounted(counts, atMs, nowMs)).toBe(true)
    expect(isCounted(counts, atMs - 2, nowMs)).toBe(false)
  })

  test('never reports a time in the past, even if another clock has counted', () => {
    const counts = { current: 0, previous: 0, limit: 1, windowMs: 60_000 }
    expect(nextAdmissionMs(counts, nowMs)).toBe(nowMs + 1)
  })

  test('admits the limit in each window after the first to a caller at twice the rate', () => {
    const [limit, windowMs] = [100, 60_000]
    const admitted = new Map<number, number>()
    const of = (window: number) => admitted.get(window) ?? 0
    let blockedUntilMs = 0
    for (let atMs = 0; atMs < 10 * windowMs; atMs += windowMs / (2 * limit)) {
      if (atMs < blockedUntilMs) continue
      const window = Math.floor(atMs / windowMs)
      const counts = { current: of(window), previous: of(window - 1), limit, windowMs }
      if (isCounted(counts, atMs, atMs)) admitted.set(window, of(window) + 1)
      else blockedUntilMs = nextAdmissionMs(counts, atMs)
    }
    for (let window = 1; window < 10; window++) {
      expect(of(window) / limit, `window ${window}`).toBeGreaterThanOrEqual(0.95)
      expect(of(window) / limit, `window ${window}`).toBeLessThanOrEqual(1.05)
    }
  })
})
