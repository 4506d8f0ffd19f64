/** Whether a limit let more through than it may: seen from the origin. */

/** Of the policy that ships. */
const LIMIT = 100
const WINDOW_MS = 60_000
/** What was admitted in one window may reach the origin this far into the next. */
const LATE_MS = 3_000

export interface LimitWatch {
  /** A request of `subject` has reached the origin. */
  arrive(subject: string, timeMs: number): void
  /** Windows in which more arrived than the limit is. */
  overruns(): readonly string[]
}

/**
 * Counts by the limiter's own windows, which begin with each minute of the clock: none of them may
 * admit more than the limit. (Over a window that begins at another moment up to 1.85 times as many
 * pass, see docs/threat-model.md.)
 */
export function createLimitWatch(): LimitWatch {
  const counts = new Map<string, number>()
  return {
    arrive(subject, timeMs) {
      if (timeMs % WINDOW_MS < LATE_MS) return
      const window = `${subject} in minute ${Math.floor(timeMs / WINDOW_MS)}`
      counts.set(window, (counts.get(window) ?? 0) + 1)
    },
    overruns: () =>
      [...counts]
        .filter(([, count]) => count > LIMIT)
        .map(([window, count]) => `${count}: ${window}`),
  }
}
