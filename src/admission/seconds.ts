/** Times as they are stored. */
import { Unavailable } from '../errors.ts'

const WHOLE_SECONDS = /^\d{1,12}$/

/**
 * A stored second since the epoch. Throws `Unavailable` for a value that is none: an unreadable
 * cut-off must not read as no cut-off.
 */
export function secondsOf(value: string): number {
  if (!WHOLE_SECONDS.test(value)) throw new Unavailable('redis', 'malformed')
  return Number(value)
}
