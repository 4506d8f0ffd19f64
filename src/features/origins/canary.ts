/** Selects the callers of a canary by a hash, so that each caller always gets the same origin. */
import type { OriginRequest } from '../../origin/origin.ts'

/** FNV-1a, 32 bits. */
const OFFSET = 0x811c9dc5
const PRIME = 0x01000193
/** Multipliers of MurmurHash3's last step: similar names have unrelated hashes. */
const MIX_1 = 0x85ebca6b
const MIX_2 = 0xc2b2ae35
const STEPS_PER_PERCENT = 100

/**
 * Reports whether a caller is among the `percent` of the canary: by issuer and subject, or by the
 * address if the caller is anonymous. With a higher percentage, the same callers and more are. `name` is the
 * origin's: different origins select different callers.
 */
export function isInCanary(
  { caller, address = '' }: Pick<OriginRequest, 'caller' | 'address'>,
  name: string,
  percent: number,
): boolean {
  const who = caller ? `${caller.issuer}\n${caller.subject}` : address
  return stepOf(`${name}\n${who}`) < percent * STEPS_PER_PERCENT
}

/** Returns a number from 0 to 9,999. */
function stepOf(text: string): number {
  let hash = OFFSET
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME)
  hash = Math.imul(hash ^ (hash >>> 16), MIX_1)
  hash = Math.imul(hash ^ (hash >>> 13), MIX_2)
  return ((hash ^ (hash >>> 16)) >>> 0) % (100 * STEPS_PER_PERCENT)
}
