/** Detects load failures on a machine without a free core for the gateway. */

/**
 * Patterns for a load that failed only with 503 responses: a call to Redis missed its deadline.
 * autocannon also reports the body of each as different.
 */
const ONLY_503 = [
  /^wrong answers from \S+: (\d+) with status 503, \1 with another body$/,
  /^wrong answers: \d+ with status 503 from \S+(?:, \d+ with status 503 from \S+)*$/,
  /(?:^|: )answers of \S+: \d+ with status 503$/,
]

/**
 * Reports whether a load failed only because of this. A real defect fails in the same way again and
 * again.
 */
export function isStarvation(message: string): boolean {
  return ONLY_503.some((complaint) => complaint.test(message))
}
