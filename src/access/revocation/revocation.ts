/** Decides whether a verified token is revoked: by its own revocation or by a revocation cutoff. */

import type { RevokedBy } from '../../problems/checks.ts'
import { keyPart } from '../../redis/key-part.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import {
  DEFAULT_CLOCK_TOLERANCE_SECONDS,
  MAX_CLOCK_TOLERANCE_SECONDS,
} from '../../validators/issuer.ts'
import type { Principal } from '../principal.ts'

/** Seconds for which a revocation outlives its token. No gateway accepts the token after that. */
export const REVOCATION_MARGIN_SECONDS = MAX_CLOCK_TOLERANCE_SECONDS

/** A token is accepted up to this many seconds before its `iat`. */
export const MAX_ISSUED_AHEAD_SECONDS = DEFAULT_CLOCK_TOLERANCE_SECONDS

export type RevokedBeforeKind = Exclude<RevokedBy, 'token'>

/** A token to revoke, from its verified claims. */
export interface RevokedToken {
  /** From `tokenIdHash`. */
  readonly tokenIdHash: string
  /** `exp` plus the issuer's clock tolerance, in seconds since the epoch. */
  readonly untilSeconds: number
  /** The subject of its principal. Absent: unknown, so that a cluster stores it in every lane. */
  readonly subject?: string | undefined
}

/** A revocation cutoff: every token issued at or before `atSeconds` is revoked. */
export interface RevokedBefore {
  readonly kind: RevokedBeforeKind
  readonly issuer: string
  /** The session, subject, client or tenant. */
  readonly value: string
  readonly atSeconds: number
  /** How long to keep the cutoff: the longest life of a token, plus the clock tolerance. */
  readonly ttlSeconds: number
}

/**
 * Port: writes revocations without a record, so an operator cannot remove them. They are in force
 * in every isolate from the next request on. Throws `Unavailable` if the revocation may not have
 * been stored.
 */
export interface Revocations {
  revokeToken(token: RevokedToken): Promise<void>
  /** Sets a cutoff. A later cutoff replaces an earlier one, never the other way round. */
  revokeBefore(revokeBefore: RevokedBefore): Promise<void>
  liftRevokedBefore(revokeBefore: Pick<RevokedBefore, 'kind' | 'issuer' | 'value'>): Promise<void>
}

/** The storage keys that decide whether one principal's token is revoked. */
export interface RevocationKeys {
  /** The key under which the isolate caches the refusal of this token. */
  readonly cacheKey: string
  /** Undefined for a token without `jti`: only a revocation cutoff can revoke it. */
  readonly token: string | undefined
  readonly revokedBefore: readonly { readonly kind: RevokedBy; readonly key: string }[]
  /** The time to compare with a revocation cutoff, in seconds since the epoch. */
  readonly issuedAtSeconds: number
}

/** For a call without a principal. */
export const NOTHING_REVOCABLE: RevocationKeys = {
  cacheKey: '',
  token: undefined,
  revokedBefore: [],
  issuedAtSeconds: 0,
}

/** The stored values of the {@link RevocationKeys}, in their order. */
export interface RevocationFacts {
  readonly tokenRevoked: boolean
  /** Seconds since the epoch. Undefined or absent: no cutoff. */
  readonly revokedBeforeSeconds: readonly (number | undefined)[]
}

/**
 * Returns what revokes the token, or undefined if nothing does. A token with `iat <= cutoff` is
 * revoked. The cutoff's own second is included, because `iat` has whole seconds and cannot order
 * events within one.
 */
export function revokedBy(
  principal: Pick<Principal, 'issuedAtSeconds'>,
  keys: RevocationKeys,
  facts: RevocationFacts,
): RevokedBy | undefined {
  if (facts.tokenRevoked) return 'token'
  if (facts.revokedBeforeSeconds.length === 0) return undefined
  for (const [index, { kind }] of keys.revokedBefore.entries()) {
    const revokeBefore = facts.revokedBeforeSeconds[index]
    if (revokeBefore !== undefined && principal.issuedAtSeconds <= revokeBefore) return kind
  }
  return undefined
}

/** Returns the key that exists if the token is revoked. Its value is never read. */
export function revokedTokenKey(keys: RedisKeys, tokenIdHash: string): string {
  return keys.revokedToken + tokenIdHash
}

/**
 * Returns the key of a cutoff. Its value is a whole number of seconds since the epoch. With a `tenant`,
 * the cutoff concerns only callers of this tenant for which the issuer vouches. A `token` is then named
 * by its `jti`.
 */
export async function revokedBeforeKey(
  keys: RedisKeys,
  kind: RevokedBy,
  issuer: string,
  value: string,
  tenant?: string,
): Promise<string> {
  const within = tenant === undefined ? '' : `${await keyPart(tenant)}:`
  return `${keys.revokedBefore}${kind}:${await keyPart(issuer)}:${within}${await keyPart(value)}`
}

/**
 * Returns all keys that decide whether a principal's token is revoked. Sessions and clients belong
 * to the token issuer. A cutoff of a tenant or subject may name the issuer that vouches for it, or
 * the token issuer. The second form covers the tokens that the token issuer issued with this name,
 * whichever issuer vouches for it.
 *
 * A caller with a tenant has further keys, which operators of its tenant write. They name the issuer
 * that vouches for the caller, because a tenant belongs to it. A caller without a tenant has none.
 */
export async function deriveRevocationKeys(
  keys: RedisKeys,
  principal: Principal,
): Promise<RevocationKeys> {
  const { issuer, tokenIssuer, session, subject, client, tenant, tokenIdHash } = principal
  const revokedBefore: { kind: RevokedBy; key: string }[] = []
  const both = issuer === tokenIssuer ? [issuer] : [issuer, tokenIssuer]
  for (const [kind, value, issuers] of [
    ['session', session, [tokenIssuer]],
    ['client', client, [tokenIssuer]],
    ['tenant', tenant, both],
    ['subject', subject, both],
  ] as const) {
    if (value === undefined) continue
    for (const by of issuers)
      revokedBefore.push({ kind, key: await revokedBeforeKey(keys, kind, by, value) })
  }
  if (tenant !== undefined) {
    for (const [kind, value] of [
      ['token', principal.tokenId],
      ['session', session],
      ['client', client],
      ['subject', subject],
    ] as const) {
      if (value === undefined) continue
      revokedBefore.push({ kind, key: await revokedBeforeKey(keys, kind, issuer, value, tenant) })
    }
  }
  const token = tokenIdHash === undefined ? undefined : revokedTokenKey(keys, tokenIdHash)
  // A token without an id is identified by its cutoff keys and the second of its issue.
  const { issuedAtSeconds } = principal
  const known = [...revokedBefore.map(({ key }) => key), issuedAtSeconds]
  // Another tenant may have a token with the same id, whatever its issuer promises.
  const own = tenant === undefined ? token : token && `${token} ${tenant}`
  const cacheKey = own ?? known.join(' ')
  // A copy has no room for more keys, which V8 adds when a list grows.
  return { cacheKey, token, revokedBefore: revokedBefore.slice(), issuedAtSeconds }
}
