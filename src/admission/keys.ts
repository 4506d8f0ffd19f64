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
const ANONYMOUS: RevocationKeys = {
  memory: 'anonymous',
  token: undefined,
  cutOffs: [],
  issuedAtSeconds: 0,
}
const MAX_ADDRESSES = 1_000

/**
 * Makes a function that derives keys and keeps them: per principal object for as long as the
 * verified-token cache keeps that, and for the last 1,000 addresses.
 */
export function createKeyCache(): (
  principal: Principal | null,
  address: string,
) => RequestKeys | Promise<RequestKeys> {
  const principals = new WeakMap<Principal, PrincipalKeys>()
  const addresses = new LRUCache<string, BanKey>({ max: MAX_ADDRESSES })

  async function derive(principal: Principal | null, address: string): Promise<RequestKeys> {
    const ban: BanKey = { by: 'address', key: await addressBanKey(address) }
    addresses.set(address, ban)
    if (principal === null) return { revocation: ANONYMOUS, bans: [ban] }
    const own = principals.get(principal) ?? (await principalKeysOf(principal))
    principals.set(principal, own)
    return { revocation: own.revocation, bans: [ban, own.ban] }
  }

  return function keysOf(principal, address) {
    const ban = addresses.get(address)
    const own = principal === null ? NOBODY : principals.get(principal)
    if (ban === undefined || own === undefined) return derive(principal, address)
    return { revocation: own.revocation, bans: own.ban === undefined ? [ban] : [ban, own.ban] }
  }
}

interface PrincipalKeys {
  readonly revocation: RevocationKeys
  readonly ban: BanKey
}

const NOBODY = { revocation: ANONYMOUS, ban: undefined }

async function principalKeysOf(principal: Principal): Promise<PrincipalKeys> {
  const key = await subjectBanKey(principal.issuer, principal.subject)
  return { revocation: await revocationKeysOf(principal), ban: { by: 'subject', key } }
}
