/** Arithmetic of the sliding window that two counters approximate. */

/** The counters of one window, as they were before the request that was refused. */
export interface WindowCounts {
  readonly current: number
  readonly previous: number
  readonly limit: number
  readonly windowMs: number
}

/**
 * When the next request can be counted, milliseconds since the epoch. A request is counted while
 * `floor((1 - elapsed) * previous) + current < limit`, where `elapsed` is the part of the current
 * window that has passed. Blocking until the end of the window instead would starve a caller
 * who is only slightly too fast: the end of a full window is the start of one that is still full.
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
