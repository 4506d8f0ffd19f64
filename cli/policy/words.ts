/** Limits in words. */
import type { PolicyLimit } from '../../src/policy/policy.ts'
import { duration } from '../text.ts'

/** Returns a limit as text: `100 per 60 s by subject`. */
export function limitInWords({ limit, windowSeconds, by, mode, cost = 1 }: PolicyLimit): string {
  return [
    `${limit} per ${duration(windowSeconds)} by ${typeof by === 'string' ? by : 'a function'}`,
    ...(cost === 1 ? [] : [`cost ${cost}`]),
    ...(mode === 'observe' ? ['observed only'] : []),
  ].join(', ')
}
