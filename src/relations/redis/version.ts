/** Parses the version of tuples in a Redis reply. */
import { Unavailable } from '../../errors.ts'

/**
 * Returns the version in microseconds since the epoch. The reply is text, because some servers
 * cannot return integers of this size. Throws `Unavailable` for anything else.
 */
export function versionIn(value: unknown): number {
  const version = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(version)) throw new Unavailable('redis', 'malformed')
  return version
}
