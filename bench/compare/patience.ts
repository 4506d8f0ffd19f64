/** Repeats what a starved machine spoiled. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isStarvation } from '../starvation.ts'

/** Half a second of load may end before anything was answered, too. */
const NONE = /: none answered$/
/** In a whole run. A gateway that is really broken does it again each time. */
const MAX_REPEATS = 5
/** Longer than a breaker stays open at first. */
const REST_MS = 2_000

/** Counts what it repeated. */
export interface Patience {
  readonly repeats: number
  /**
   * Resolves to what `measure` does in the end. Throws what it throws: starvation after many repeats,
   * anything else at once.
   */
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
        const isStarved = isStarvation(message) || NONE.test(message)
        if (repeats === MAX_REPEATS || !isStarved) throw error
        repeats++
        onProgress(`the machine is too busy (${message}): again`)
        await rest()
      }
    }
  }
  return Object.defineProperty(patiently, 'repeats', { get: () => repeats }) as Patience
}
