/** How much an isolate may write about those who are refused. */

const MS_PER_SECOND = 1_000

/**
 * Makes the budget: true for so many calls in each second of the clock, then false until the next.
 * Counts by time and not by what is under way, because the platform may end a request, and with it
 * what it left behind, without a word.
 */
export function createWriteBudget(perSecond: number, now: () => number): () => boolean {
  let second = 0
  let spent = 0
  return function mayWrite() {
    const current = Math.floor(now() / MS_PER_SECOND)
    if (current !== second) [second, spent] = [current, 0]
    spent += 1
    return spent <= perSecond
  }
}
