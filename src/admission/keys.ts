/** Storage keys of a request, derived once per principal and address. */
import { LRUCache } from 'lru-cache'
import { addressBanKey, type BanKey, observedBan, subjectBanKey } from '../abuse/ban.ts'
import type { Principal } from '../identity/principal.ts'
import type { FeedMark } from '../revocation/feed.ts'
import { type RevocationKeys, revocationKeysOf } from '../revocation/revocation.ts'

/** The keys that decide whether a request is refused, apart from its limits. */
export interface DecidingKeys {
  readonly revocation: RevocationKeys
  readonly bans: readonly BanKey[]
}

export interface RequestKeys extends DecidingKeys {
  /** The party of the address, and the party of the principal if there is one. */
  readonly parties: readonly Party[]
}

/**
 * An address or a principal: the keys that can refuse it, and the mark at which none of them did.
 */
export interface Party {
  readonly keys: readonly string[]
  /** The mark at which no key refused the party. Undefined: not determined yet. */
  cleanAt: FeedMark | undefined
}

/** An anonymous caller has nothing that can be revoked. */
const ANONYMOUS: RevocationKeys = {
  memory: 'anonymous',
  token: undefined,
  revokedBefore: [],
  issuedAtSeconds: 0,
}
const MAX_ADDRESSES = 1_000

/**
 * Creates a function that derives keys and caches them. Keys of a principal are cached per
 * principal object, as long as the verified-token cache keeps that object. Keys of addresses are
 * cached for the last 1,000 addresses.
 */
export function createKeyCache(): (
  principal: Principal | null,
  address: string,
) => RequestKeys | Promise<RequestKeys> {
  const principals = new WeakMap<Principal, PrincipalKeys>()
  const addresses = new LRUCache<string, AddressKeys>({ max: MAX_ADDRESSES })

  async function derive(principal: Principal | null, address: string): Promise<RequestKeys> {
    const ban: BanKey = { by: 'address', key: await addressBanKey(address) }
    // A concurrent request may have stored the entry meanwhile. Use that entry, with its `cleanAt`.
    const place = addresses.get(address) ?? { ban, party: partyOf([ban]) }
    addresses.set(address, place)
    if (principal === null) return joined(place)
    const made = principals.get(principal) ?? (await principalKeysOf(principal))
    const own = principals.get(principal) ?? made
    principals.set(principal, own)
    return joined(place, own)
  }

  return function keysOf(principal, address) {
    const place = addresses.get(address)
    if (place === undefined) return derive(principal, address)
    if (principal === null) return joined(place)
    const own = principals.get(principal)
    return own === undefined ? derive(principal, address) : joined(place, own)
  }
}

interface AddressKeys {
  readonly ban: BanKey
  readonly party: Party
}

interface PrincipalKeys extends AddressKeys {
  readonly revocation: RevocationKeys
}

function joined({ ban, party }: AddressKeys, own?: PrincipalKeys): RequestKeys {
  if (own === undefined) return { revocation: ANONYMOUS, bans: [ban], parties: [party] }
  return { revocation: own.revocation, bans: [ban, own.ban], parties: [party, own.party] }
}

function partyOf(bans: readonly BanKey[], revocation: RevocationKeys = ANONYMOUS): Party {
  const { token, revokedBefore } = revocation
  const keys = [
    ...(token === undefined ? [] : [token]),
    ...revokedBefore.map(({ key }) => key),
    ...bans.flatMap((ban) => [ban.key, observedBan(ban).key]),
  ]
  return { keys, cleanAt: undefined }
}

async function principalKeysOf(principal: Principal): Promise<PrincipalKeys> {
  const key = await subjectBanKey(principal.issuer, principal.subject)
  const [revocation, ban] = [await revocationKeysOf(principal), { by: 'subject', key } as const]
  return { revocation, ban, party: partyOf([ban], revocation) }
}
