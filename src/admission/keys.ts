/** The storage keys of a request, derived once per principal and address. */
import { LRUCache } from 'lru-cache'
import type { Principal } from '../tokens/principal.ts'
import { addressBanKey, type BanKey, subjectBanKey } from './ban.ts'
import { type RevocationKeys, revocationKeysOf } from './revocation.ts'

/** What decides over a request besides its limits. */
export interface RequestKeys {
  readonly revocation: RevocationKeys
  readonly bans: readonly BanKey[]
}

/** Nothing about an anonymous caller can be revoked. */
const ANONYMOUS: RevocationKeys = { memory: 'anonymous', token: undefined, cutOffs: [] }
const MAX_ADDRESSES = 1_000

/**
 * Makes a function that derives keys and keeps them: per principal object for as long as the
 * verified-token cache keeps that, and for the last 1,000 addresses.
 */
export function createKeyCache(): (
  principal: Principal | null,
  address: string,
) => Promise<RequestKeys> {
  const principals = new WeakMap<Principal, { revocation: RevocationKeys; ban: BanKey }>()
  const addresses = new LRUCache<string, BanKey>({ max: MAX_ADDRESSES })

  async function ofAddress(address: string): Promise<BanKey> {
    const ban: BanKey = { by: 'address', key: await addressBanKey(address) }
    addresses.set(address, ban)
    return ban
  }

  async function ofPrincipal(principal: Principal) {
    const ban: BanKey = {
      by: 'subject',
      key: await subjectBanKey(principal.issuer, principal.subject),
    }
    const keys = { revocation: await revocationKeysOf(principal), ban }
    principals.set(principal, keys)
    return keys
  }

  return async function keysOf(principal, address) {
    const byAddress = addresses.get(address) ?? (await ofAddress(address))
    if (principal === null) return { revocation: ANONYMOUS, bans: [byAddress] }
    const own = principals.get(principal) ?? (await ofPrincipal(principal))
    return { revocation: own.revocation, bans: [byAddress, own.ban] }
  }
}
