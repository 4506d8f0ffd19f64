/** Parses stored times. */
import { Unavailable } from '../errors.ts'

const WHOLE_SECONDS = /^\d{1,12}$/

/**
 * Parses a stored second since the epoch. Throws `Unavailable` for any other value: an unreadable
 * revocation cutoff must not count as no cutoff.
 */
export function secondsOf(value: string): number {
  if (!WHOLE_SECONDS.test(value)) throw new Unavailable('redis', 'malformed')
  return Number(value)
}
