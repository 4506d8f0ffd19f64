/** The period of a page: `last`, or `since` and `until`. */
import type { Query } from './page.ts'

/** The periods that a page offers, in seconds. */
export const PERIODS: Readonly<Record<string, number>> = {
  '15m': 900,
  '1h': 3_600,
  '6h': 21_600,
  '24h': 86_400,
  '7d': 604_800,
}

const DEFAULT_PERIOD = '1h'

export const withPeriod = (query: Query): Query =>
  query.since === undefined ? { last: DEFAULT_PERIOD, ...query } : query

/** Returns the times of a query for the operators' calls. */
export function timesOf(
  { since, until, last = DEFAULT_PERIOD }: Query,
  nowMs: number,
): Readonly<Record<string, string>> {
  const seconds = Object.hasOwn(PERIODS, last) ? PERIODS[last] : undefined
  return {
    since: since ?? new Date(nowMs - (seconds ?? 3_600) * 1_000).toISOString(),
    ...(until !== undefined && { until }),
  }
}
