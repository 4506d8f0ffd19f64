/** What the windows of the simulated callers admitted, from when each request was admitted. */

/** When the requests of one window were admitted, in milliseconds, and what it allows. */
export interface Admitted {
  readonly timesMs: readonly number[]
  readonly limit: number
  readonly windowSeconds: number
}

/** Returns the most requests in any period of the window's length, as a part of the limit. */
export function fullest({ timesMs, limit, windowSeconds }: Admitted): number {
  let [most, from] = [0, 0]
  for (const [index, atMs] of timesMs.entries()) {
    while ((timesMs[from] ?? atMs) <= atMs - windowSeconds * 1000) from += 1
    most = Math.max(most, index - from + 1)
  }
  return most / limit
}

/** Returns the requests from `fromMs` to `toMs`, as a part of what the limit allows in that time. */
export function saturation(
  { timesMs, limit, windowSeconds }: Admitted,
  fromMs: number,
  toMs: number,
): number {
  const count = timesMs.filter((atMs) => atMs >= fromMs && atMs < toMs).length
  return (count * windowSeconds * 1000) / (limit * (toMs - fromMs))
}
