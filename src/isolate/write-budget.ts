/** Limits how often an isolate writes records about refused requests. */

const MS_PER_SECOND = 1_000

/**
 * Creates the budget: a function that returns true for the first `perSecond` calls in each second,
 * and then false. It counts by time instead of by calls in progress, because the platform may end a
 * request and its background work without notice.
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
