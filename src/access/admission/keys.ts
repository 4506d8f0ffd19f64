/** Storage keys of a request, derived once per principal and address. */
import { attached } from '../../isolate/attached.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import { addressBanKeys, type BanKey, listSubjectBans, observedBan } from '../abuse/ban.ts'
import type { Principal } from '../principal.ts'
import type { FeedMark } from '../revocation/feed.ts'
import {
  deriveRevocationKeys,
  NOTHING_REVOCABLE,
  type RevocationKeys,
} from '../revocation/revocation.ts'

/** The keys that decide whether a request is refused, apart from its limits. */
export interface DecidingKeys {
  readonly revocation: RevocationKeys
  readonly bans: readonly BanKey[]
}

export interface RequestKeys extends DecidingKeys {
  /** The subject, or the address of an anonymous caller. */
  readonly caller: string
  /**
   * The party of the address. With a principal, also those of its credentials and of the principal; with
   * an unverified credential, also that of the credentials.
   */
  readonly parties: readonly Party[]
}

/** An address or a principal, with all keys that can refuse it. */
export interface Party {
  readonly keys: readonly string[]
  /** The mark at which no key refused the party. Undefined: not determined yet. */
  cleanAt: FeedMark | undefined
}

const MAX_ADDRESSES = 1_000

interface PartyKeys {
  readonly ban: BanKey
  readonly party: Party
}

/** An address, and its credentials, which can be banned without it. */
interface AddressKeys extends PartyKeys {
  readonly credentials: PartyKeys
}

type PrincipalKeys = Awaited<ReturnType<typeof derivePrincipalKeys>>

/**
 * Creates a function that derives keys and caches them. Without a principal, `isUnverified` adds those of
 * the credentials of the address: the caller sends one that only the origin verifies. Keys of a principal are cached per
 * principal object, as long as the verified-token cache keeps that object. Keys of addresses are
 * cached for the last `max` addresses, 1,000 by default.
 */
export function createKeyCache(
  keys: RedisKeys,
  max = MAX_ADDRESSES,
): (
  principal: Principal | null,
  address: string,
  isUnverified?: boolean,
) => RequestKeys | Promise<RequestKeys> {
  const principals = attached<Principal, PrincipalKeys>()
  const addresses = createLruMap<string, AddressKeys>({ max })

  async function derive(
    principal: Principal | null,
    address: string,
    isUnverified: boolean,
  ): Promise<RequestKeys> {
    const [everything, credentials] = await addressBanKeys(keys, address)
    // A concurrent request may have stored the entry meanwhile. Use that entry, with its `cleanAt`.
    const known = addresses.get(address) ?? {
      ban: everything,
      party: createParty(keys, [everything]),
      credentials: { ban: credentials, party: createParty(keys, [credentials]) },
    }
    addresses.set(address, known)
    if (principal === null) return withoutPrincipal(known, address, isUnverified)
    const made = principals(principal) ?? (await derivePrincipalKeys(keys, principal))
    return joined(known, principals(principal) ?? principals(principal, made), principal)
  }

  return function keysOf(principal, address, isUnverified = false) {
    const known = addresses.get(address)
    if (known === undefined) return derive(principal, address, isUnverified)
    if (principal === null) return withoutPrincipal(known, address, isUnverified)
    const own = principals(principal)
    if (own === undefined) return derive(principal, address, isUnverified)
    return joined(known, own, principal)
  }
}

function withoutPrincipal(
  { ban, party, credentials }: AddressKeys,
  caller: string,
  isUnverified: boolean,
): RequestKeys {
  const revocation = NOTHING_REVOCABLE
  if (!isUnverified) return { caller, revocation, bans: [ban], parties: [party] }
  return { caller, revocation, bans: [ban, credentials.ban], parties: [party, credentials.party] }
}

function joined(
  { ban, party, credentials }: AddressKeys,
  own: PrincipalKeys,
  { subject }: Principal,
): RequestKeys {
  return {
    caller: subject,
    revocation: own.revocation,
    bans: [ban, ...own.bans, credentials.ban],
    parties: [party, own.party, credentials.party],
  }
}

function createParty(
  names: RedisKeys,
  bans: readonly BanKey[],
  { token, revokedBefore } = NOTHING_REVOCABLE,
): Party {
  const keys = bans.flatMap((ban) => [ban.key, observedBan(names, ban).key])
  for (const { key } of revokedBefore) keys.push(key)
  if (token !== undefined) keys.push(token)
  // A copy has no room for more keys, which V8 adds when a list grows.
  return { keys: keys.slice(), cleanAt: undefined }
}

async function derivePrincipalKeys(keys: RedisKeys, principal: Principal) {
  const bans = await listSubjectBans(keys, principal)
  const revocation = await deriveRevocationKeys(keys, principal)
  return { revocation, bans, party: createParty(keys, bans, revocation) }
}
