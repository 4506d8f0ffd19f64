/** Checks at the origin that a limit did not admit too many requests. */

/** The limit of the shipped policy. */
const LIMIT = 100
const WINDOW_MS = 60_000
/** Requests admitted in one window may reach the origin this late in the next window. */
const LATE_MS = 3_000

export interface LimitWatch {
  /** Records a request of `subject` at the origin. */
  arrive(subject: string, timeMs: number): void
  /** Returns the windows with more requests than the limit. */
  overruns(): readonly string[]
}

/**
 * Creates the check. It uses the limiter's own windows, which start with each minute of the clock:
 * none may admit more than the limit. (In a window with another start, up to 1.85 times the limit
 * may pass, see docs/threat-model.md.)
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
