/** Detects load failures on a machine without a free core for the gateway, and repeats the load. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Patterns of a load that failed only because calls to Redis missed their deadlines. */
const PATTERNS = [
  /^wrong responses from \S+: \d+ with status 503$/,
  /^wrong responses: \d+ with status 503 from \S+(?:, \d+ with status 503 from \S+)*$/,
]

/** Reports whether a load failed only because of this. A defect fails again and again. */
export function isStarvation(message: string): boolean {
  return PATTERNS.some((complaint) => complaint.test(message))
}

/** Maximum number of repeats in a run. A defect fails each time. */
const MAX_REPEATS = 5
/** Longer than a breaker stays open at first. */
const REST_MS = 2_000

/** Repeats measurements that a busy machine spoiled. */
export interface Patience {
  readonly repeats: number
  /** Repeats `measure` until it succeeds. Throws after too many repeats, or for other errors. */
  <Result>(measure: () => Promise<Result>): Promise<Result>
}

export function createPatience(
  onProgress: (what: string) => void,
  rest: () => Promise<unknown> = () => sleep(REST_MS),
): Patience {
  let repeats = 0
  async function patiently<Result>(measure: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await measure()
      } catch (error) {
        const { message } = error as Error
        if (repeats === MAX_REPEATS || !isStarvation(message)) throw error
        repeats++
        onProgress(`the machine is too busy (${message}); repeating`)
        await rest()
      }
    }
  }
  return Object.defineProperty(patiently, 'repeats', { get: () => repeats }) as Patience
}
