/** How a load complains of a machine that had no core for a process that was ready. */

/**
 * Answers with 503 and nothing else: a call to Redis missed its deadline, and the gateway said so.
 * autocannon counts the body of each of them as another one, too.
 */
const ONLY_503 =
  /^wrong answers(?: from \S+: (\d+) with status 503, \1 with another body|: \d+ with status 503 from \S+(?:, \d+ with status 503 from \S+)*)$/

/** Whether a load failed by nothing but that. What is really broken fails so again and again. */
export function isStarvation(message: string): boolean {
  return ONLY_503.test(message)
}
