/** Bans of client addresses and subjects: told to the caller, and lifted by time. */
import type { Denial } from '../errors.ts'
import { keyPart } from './key.ts'

/** One ban that may cover a request. */
export interface BanKey {
  readonly by: 'address' | 'subject'
  readonly key: string
}

/** The key of an address's ban. Its value is the second since the epoch at which it ends. */
export async function addressBanKey(address: string): Promise<string> {
  return `pc:ban:address:${await keyPart(address)}`
}

/** The key of a subject's ban. Its value is the second since the epoch at which it ends. */
export async function subjectBanKey(issuer: string, subject: string): Promise<string> {
  return `pc:ban:subject:${await keyPart(issuer)}:${await keyPart(subject)}`
}

/** The ban that holds longest at `nowMs`, if one does. `untilSeconds` is in the order of `keys`. */
export function banOf(
  keys: readonly BanKey[],
  untilSeconds: readonly (number | undefined)[],
  nowMs: number,
): Denial | undefined {
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
