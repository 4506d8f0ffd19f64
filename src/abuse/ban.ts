/** Bans of addresses and subjects: their storage keys, and the decision whether one is in force. */
import type { Denial } from '../problems/reasons.ts'
import { keyPart } from '../redis/key-part.ts'
import {
  ADDRESS_BAN_PREFIX,
  OBSERVED_ADDRESS_BAN_PREFIX,
  OBSERVED_SUBJECT_BAN_PREFIX,
  SUBJECT_BAN_PREFIX,
} from '../redis/keys.ts'
import type { Mode } from '../validators/mode.ts'

export interface BanKey {
  readonly by: 'address' | 'subject'
  readonly key: string
}

/** Observed bans have their own prefixes, so that they are never read as bans in force. */
const PREFIXES: Readonly<Record<BanKey['by'], Readonly<Record<Mode, string>>>> = {
  address: { enforce: ADDRESS_BAN_PREFIX, observe: OBSERVED_ADDRESS_BAN_PREFIX },
  subject: { enforce: SUBJECT_BAN_PREFIX, observe: OBSERVED_SUBJECT_BAN_PREFIX },
}

/** Returns the key of an address's ban. Its value is the second since the epoch when it ends. */
export async function addressBanKey(address: string, mode: Mode = 'enforce'): Promise<string> {
  return `${PREFIXES.address[mode]}${await keyPart(address)}`
}

/** Returns the key of a subject's ban. Its value is the second since the epoch when it ends. */
export async function subjectBanKey(
  issuer: string,
  subject: string,
  mode: Mode = 'enforce',
): Promise<string> {
  return `${PREFIXES.subject[mode]}${await keyPart(issuer)}:${await keyPart(subject)}`
}

/** Returns the key of the same ban in observe mode. */
export function observedBan({ by, key }: BanKey): BanKey {
  const { enforce, observe } = PREFIXES[by]
  return { by, key: observe + key.slice(enforce.length) }
}

/**
 * Returns the ban in force at `nowMs` that ends last, or undefined if none is in force.
 * `untilSeconds` has the order of `keys`. It may be shorter: absent values mean no ban.
 */
export function banOf(
  keys: readonly BanKey[],
  untilSeconds: readonly (number | undefined)[],
  nowMs: number,
): Denial | undefined {
  if (untilSeconds.length === 0) return undefined
  let ban: (Denial & { readonly code: 'banned' }) | undefined
  for (const [index, { by }] of keys.entries()) {
    const until = untilSeconds[index]
    if (until === undefined) continue
    const retryAfterSeconds = Math.ceil(until - nowMs / 1000)
    if (retryAfterSeconds > (ban?.retryAfterSeconds ?? 0))
      ban = { code: 'banned', by, retryAfterSeconds }
  }
  return ban
}
