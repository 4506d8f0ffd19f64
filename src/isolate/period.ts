/** Periods by a clock that may be set back: how long something is cached, refused or left to another request. */

/** Requests of one Worker may read times in another order, so smaller steps are not noticed. */
export const STEP_MS = 5_000

/**
 * Reports whether a period that began at `startMs` continues. A reading from before its start, by more than
 * `stepMs`, means that the clock was set back. Then the period is over, because it would otherwise last longer by
 * the whole step.
 *
 * A step is NOT noticed if the next reading is within the period again, because the step was short, or because
 * nothing read the clock for as long as the step. From that reading on, the period lasts at most its own length.
 */
export const isWithin = (
  startMs: number,
  periodMs: number,
  nowMs: number,
  stepMs: number = STEP_MS,
): boolean => nowMs < startMs + periodMs && nowMs >= startMs - stepMs

/** As {@link isWithin}, for a period of at most `periodMs` of which only the end is known. Undefined: it is over. */
export const isUntil = (endMs: number | undefined, periodMs: number, nowMs: number): boolean =>
  endMs !== undefined && isWithin(endMs - periodMs, periodMs, nowMs)
