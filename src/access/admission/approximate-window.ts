/** Arithmetic of the sliding window that is approximated with two counters. */

/** The counters of one window, before the refused request. */
export interface WindowCounts {
  readonly current: number
  readonly previous: number
  readonly limit: number
  readonly windowMs: number
}

/**
 * Returns when the next request can be counted, in milliseconds since the epoch. A request is
 * counted while `floor((1 - elapsed) * previous) + current < limit`, where `elapsed` is the elapsed
 * fraction of the current window. Blocking until the end of the window would starve a caller that
 * is only slightly too fast. The window after a full one starts with that full count as `previous`.
 */
export function nextAdmissionMs(counts: WindowCounts, nowMs: number): number {
  const { current, previous, limit, windowMs } = counts
  const startMs = Math.floor(nowMs / windowMs) * windowMs
  const nextMs =
    current < limit
      ? startMs + windowMs * (1 - (limit - current) / Math.max(previous, 1))
      : startMs + windowMs * (2 - limit / current)
  return Math.max(Math.floor(nextMs) + 1, nowMs + 1)
}
