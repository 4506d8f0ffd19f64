/** Bans of addresses and subjects: their storage keys, and the decision whether one is in force. */
import type { Denial } from '../../problems/reasons.ts'
import { secondsUntil } from '../../problems/retry-after.ts'
import { keyPart } from '../../redis/key-part.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import type { Mode } from '../../validators/mode.ts'

export const BAN_SCOPES = ['credentials', 'everything'] as const
/**
 * What a ban of an address refuses: requests with a credential, or every request. A ban of a subject
 * refuses every request of the subject.
 */
export type BanScope = (typeof BAN_SCOPES)[number]

export interface BanKey {
  readonly by: 'address' | 'subject'
  readonly key: string
  /** Of an address. Default `everything`. */
  readonly refuses?: BanScope
}

/** Observed bans have their own names, so that they are never read as bans in force. */
const NAMES = {
  everything: { enforce: 'addressBan', observe: 'observedAddressBan' },
  credentials: { enforce: 'credentialsBan', observe: 'observedCredentialsBan' },
  subject: { enforce: 'subjectBan', observe: 'observedSubjectBan' },
} as const

/** Returns the key of an address's ban. Its value is the second since the epoch when it ends. */
export async function addressBanKey(
  keys: RedisKeys,
  address: string,
  mode: Mode = 'enforce',
  refuses: BanScope = 'everything',
): Promise<string> {
  return `${keys[NAMES[refuses][mode]]}${await keyPart(address)}`
}

/** Returns the keys of the bans of an address, for requests with a credential. */
export async function addressBanKeys(
  keys: RedisKeys,
  address: string,
): Promise<readonly [everything: BanKey, credentials: BanKey]> {
  const [everything, credentials] = await Promise.all([
    addressBanKey(keys, address),
    addressBanKey(keys, address, 'enforce', 'credentials'),
  ])
  return [
    { by: 'address', key: everything },
    { by: 'address', key: credentials, refuses: 'credentials' },
  ]
}

/** A subject of an issuer; with a tenant, only as a member of this tenant of the issuer. */
export interface Member {
  readonly issuer: string
  readonly subject: string
  readonly tenant?: string | undefined
}

/** Returns the end of the keys of a subject: `<issuer>:<subject>` or `<issuer>:<tenant>:<subject>`. */
export async function memberPart({ issuer, subject, tenant }: Member): Promise<string> {
  const within = tenant === undefined ? '' : `${await keyPart(tenant)}:`
  return `${await keyPart(issuer)}:${within}${await keyPart(subject)}`
}

/**
 * Returns the key of a subject's ban. Its value is the second since the epoch when it ends. With a
 * `tenant`, the ban concerns the subject only as a member of this tenant of the issuer.
 */
export async function subjectBanKey(
  keys: RedisKeys,
  issuer: string,
  subject: string,
  mode: Mode = 'enforce',
  tenant?: string,
): Promise<string> {
  return keys[NAMES.subject[mode]] + (await memberPart({ issuer, subject, tenant }))
}

/**
 * Returns the keys of the bans that refuse a caller as a subject: the platform's, and for a caller with
 * a tenant also the one within its tenant.
 */
export async function listSubjectBans(
  keys: RedisKeys,
  { issuer, subject, tenant }: Member,
): Promise<readonly BanKey[]> {
  const by = 'subject'
  const everywhere: BanKey = { by, key: await subjectBanKey(keys, issuer, subject) }
  if (tenant === undefined) return [everywhere]
  const within: BanKey = { by, key: await subjectBanKey(keys, issuer, subject, 'enforce', tenant) }
  return [everywhere, within]
}

/** Returns the key of the same ban in observe mode. */
export function observedBan(keys: RedisKeys, ban: BanKey): BanKey {
  const { by, key, refuses = 'everything' } = ban
  const { enforce, observe } = NAMES[by === 'subject' ? by : refuses]
  return { ...ban, key: keys[observe] + key.slice(keys[enforce].length) }
}

/**
 * Returns the ban in force at `nowMs` that ends last, or undefined if none is in force.
 * `untilSeconds` has the order of `keys`. It may be shorter: absent values mean no ban.
 */
export function findBan(
  keys: readonly BanKey[],
  untilSeconds: readonly (number | undefined)[],
  nowMs: number,
): Denial | undefined {
  if (untilSeconds.length === 0) return undefined
  let ban: (Denial & { readonly code: 'banned' }) | undefined
  for (const [index, { by }] of keys.entries()) {
    const until = untilSeconds[index]
    if (until === undefined || until * 1000 <= nowMs) continue
    const retryAfterSeconds = secondsUntil(until * 1000, nowMs)
    if (retryAfterSeconds > (ban?.retryAfterSeconds ?? 0))
      ban = { code: 'banned', by, retryAfterSeconds }
  }
  return ban
}
