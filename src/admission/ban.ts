/** Bans of client addresses and subjects: told to the caller, and lifted by time. */
import type { Denial } from '../errors.ts'
import type { Mode } from '../validators/mode.ts'
import { keyPart } from './key.ts'

/** One ban that may cover a request. */
export interface BanKey {
  readonly by: 'address' | 'subject'
  readonly key: string
}

/** Bans that would hold are beside those that do, where nothing takes one for the other. */
const PREFIXES: Readonly<Record<BanKey['by'], Readonly<Record<Mode, string>>>> = {
  address: { enforce: 'pc:ban:address:', observe: 'pc:observed-ban:address:' },
  subject: { enforce: 'pc:ban:subject:', observe: 'pc:observed-ban:subject:' },
}

/** The key of an address's ban. Its value is the second since the epoch at which it ends. */
export async function addressBanKey(address: string, mode: Mode = 'enforce'): Promise<string> {
  return `${PREFIXES.address[mode]}${await keyPart(address)}`
}

/** The key of a subject's ban. Its value is the second since the epoch at which it ends. */
export async function subjectBanKey(
  issuer: string,
  subject: string,
  mode: Mode = 'enforce',
): Promise<string> {
  return `${PREFIXES.subject[mode]}${await keyPart(issuer)}:${await keyPart(subject)}`
}

/** The same ban, if it only would hold. */
export function observedBan({ by, key }: BanKey): BanKey {
  const { enforce, observe } = PREFIXES[by]
  return { by, key: observe + key.slice(enforce.length) }
}

/**
 * The ban that holds longest at `nowMs`, if one does. `untilSeconds` is in the order of `keys`, and may
 * end before those that are not there.
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
