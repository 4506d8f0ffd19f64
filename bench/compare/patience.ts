/** Repeats what a starved machine spoiled. */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * How the load complains when processes that were ready did not get a core in time: a call to
 * Redis missed its deadline, which the gateway answers with 503, or nothing was answered at all.
 * Whatever else is wrong is never repeated.
 */
const STARVED = /: (?:\d+ with status 503, \d+ with another body|none answered)$/
/** In a whole run. A gateway that is really broken does it again each time. */
const MAX_REPEATS = 5
/** Longer than a breaker stays open at first. */
const REST_MS = 2_000

/** Counts what it repeated. */
export interface Patience {
  readonly repeats: number
  /** Resolves to what `measure` does in the end. Throws what it throws, once there is no hope. */
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
        if (repeats === MAX_REPEATS || !STARVED.test(message)) throw error
        repeats++
        onProgress(`the machine is too busy (${message}): again`)
        await rest()
      }
    }
  }
  return Object.defineProperty(patiently, 'repeats', { get: () => repeats }) as Patience
}
