/** Versions of tuples, as Redis tells them. */
import { Unavailable } from '../../errors.ts'

/**
 * The version that a text tells: microseconds since the epoch. It is told as text since it is more than
 * an integer reply of every server can hold. Throws `Unavailable` for everything else.
 */
export function versionIn(value: unknown): number {
  const version = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(version)) throw new Unavailable('redis', 'malformed')
  return version
}
