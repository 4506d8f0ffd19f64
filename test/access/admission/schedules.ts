/** Schedules of requests for property tests, and measurements of their outcomes. */
import fc from 'fast-check'

/** Fixed, so that every run has the same schedules. */
export const SEED = 20_261_121

export interface Schedule {
  readonly limit: number
  readonly windowSeconds: number
  readonly cost: number
  /** Microseconds between consecutive requests. */
  readonly gaps: readonly number[]
}

/** When a request arrived, in microseconds, and its result. */
export interface Outcome {
  readonly atMicros: number
  readonly admitted: boolean
}

/** Bursts, trickles, and pauses near one step and near one window. */
export const schedules = (length: number, windows: readonly number[] = [1, 2, 60]) =>
  fc
    .record({
      limit: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 41, max: 400 })),
      windowSeconds: fc.constantFrom(...windows),
      costShare: fc.double({ min: 0, max: 1, noNaN: true }),
      pace: fc.constantFrom(0.1, 0.5, 1.1, 2, 20),
    })
    .chain(({ limit, windowSeconds, costShare, pace }) => {
      const windowMicros = windowSeconds * 1e6
      const most = Math.max(1, Math.floor(windowMicros / (pace * limit)))
      const gap = fc.oneof(
        { weight: 4, arbitrary: fc.constant(0) },
        { weight: 12, arbitrary: fc.integer({ min: 0, max: most }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: Math.ceil(windowMicros / 8) }) },
        { weight: 1, arbitrary: fc.integer({ min: windowMicros - 2, max: windowMicros + 2 }) },
      )
      const cost = costShare < 0.7 ? 1 : Math.max(1, Math.floor((costShare - 0.7) * limit))
      return fc.record({
        limit: fc.constant(limit),
        windowSeconds: fc.constant(windowSeconds),
        cost: fc.constant(cost),
        gaps: fc.array(gap, { minLength: length / 2, maxLength: length }),
      })
    })

/** Returns the most units that were admitted within any `windowMicros`. */
export function worstOf(outcomes: readonly Outcome[], windowMicros: number, cost: number): number {
  const admitted = outcomes.filter(({ admitted: isIn }) => isIn)
  let [worst, from] = [0, 0]
  for (const [index, { atMicros }] of admitted.entries()) {
    while ((admitted[from]?.atMicros ?? 0) <= atMicros - windowMicros) from += 1
    worst = Math.max(worst, (index - from + 1) * cost)
  }
  return worst
}

/** Returns the fewest units that any refusal had in the window before it. */
export function leastBefore(
  outcomes: readonly Outcome[],
  windowMicros: number,
  cost: number,
): number {
  let [least, from, inside] = [Number.POSITIVE_INFINITY, 0, 0]
  for (const { atMicros, admitted } of outcomes) {
    for (
      let first = outcomes[from];
      first !== undefined && first.atMicros <= atMicros - windowMicros;
      first = outcomes[from]
    ) {
      if (first.admitted) inside -= cost
      from += 1
    }
    if (admitted) inside += cost
    else least = Math.min(least, inside)
  }
  return least
}
