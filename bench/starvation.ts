/** How a load complains of a machine that had no core for a process that was ready. */

/**
 * Answers with 503 and nothing else: a call to Redis missed its deadline, and the gateway said so.
 * autocannon counts the body of each of them as another one, too.
 */
const ONLY_503 = [
  /^wrong answers from \S+: (\d+) with status 503, \1 with another body$/,
  /^wrong answers: \d+ with status 503 from \S+(?:, \d+ with status 503 from \S+)*$/,
  /(?:^|: )answers of \S+: \d+ with status 503$/,
]

/** Whether a load failed by nothing but that. What is really broken fails so again and again. */
export function isStarvation(message: string): boolean {
  return ONLY_503.some((complaint) => complaint.test(message))
}
