/** Whether a verified token is still good: its own revocation, and the cut-offs that cover it. */
import { MAX_CLOCK_TOLERANCE_SECONDS } from '../config.ts'
import type { RevokedBy } from '../errors.ts'
import type { Principal } from '../tokens/principal.ts'
import { keyPart } from './key.ts'

/**
 * How much longer than a token its revocation is kept: no gateway takes a token for longer than this
 * after its end.
 */
export const REVOCATION_MARGIN_SECONDS = MAX_CLOCK_TOLERANCE_SECONDS

/** What can be cut off: everything issued to it up to a second is dead from then on. */
export type CutOffKind = Exclude<RevokedBy, 'token'>

/**
 * Storage keys that decide over one principal's token, in the order of {@link RevocationFacts}.
 * Derived once per principal.
 */
export interface RevocationKeys {
  /** What the isolate remembers a refusal of this token under. */
  readonly memory: string
  /** Undefined for a token without `jti`: it can only be cut off. */
  readonly token: string | undefined
  readonly cutOffs: readonly { readonly kind: CutOffKind; readonly key: string }[]
  /** What a cut-off is held against, seconds since the epoch. */
  readonly issuedAtSeconds: number
}

/** What the store knows. */
export interface RevocationFacts {
  readonly tokenRevoked: boolean
  /** Seconds since the epoch per entry of {@link RevocationKeys.cutOffs}; undefined or absent: none. */
  readonly cutOffSeconds: readonly (number | undefined)[]
}

/**
 * Decides by what a token is revoked, if it is. A token with `iat <= cutoff` is dead: the boundary
 * second is included, because `iat` is too coarse to tell before from after within it.
 */
export function revokedBy(
  principal: Principal,
  keys: RevocationKeys,
  facts: RevocationFacts,
): RevokedBy | undefined {
  if (facts.tokenRevoked) return 'token'
  if (facts.cutOffSeconds.length === 0) return undefined
  for (const [index, { kind }] of keys.cutOffs.entries()) {
    const cutOff = facts.cutOffSeconds[index]
    if (cutOff !== undefined && principal.issuedAtSeconds <= cutOff) return kind
  }
  return undefined
}

/** The key of a revoked token. Its value is never looked at; that it exists is the revocation. */
export function revokedTokenKey(tokenIdHash: string): string {
  return `pc:revoked:${tokenIdHash}`
}

/** The key of a cut-off. Its value is a whole number of seconds since the epoch. */
export async function cutOffKey(kind: CutOffKind, issuer: string, value: string): Promise<string> {
  return `pc:cutoff:${kind}:${await keyPart(issuer)}:${await keyPart(value)}`
}

/**
 * All keys that decide over a principal's token. Sessions and clients are the token issuer's own;
 * tenants and subjects can be cut off as those of the issuer that vouches for them, or with all that
 * this issuer made of them.
 */
export async function revocationKeysOf(principal: Principal): Promise<RevocationKeys> {
  const { issuer, tokenIssuer, session, subject, client, tenant, tokenIdHash } = principal
  const cutOffs: { kind: CutOffKind; key: string }[] = []
  const both = issuer === tokenIssuer ? [issuer] : [issuer, tokenIssuer]
  for (const [kind, value, issuers] of [
    ['session', session, [tokenIssuer]],
    ['client', client, [tokenIssuer]],
    ['tenant', tenant, both],
    ['subject', subject, both],
  ] as const) {
    if (value === undefined) continue
    for (const by of issuers) cutOffs.push({ kind, key: await cutOffKey(kind, by, value) })
  }
  const token = tokenIdHash === undefined ? undefined : revokedTokenKey(tokenIdHash)
  // Without an id, a token is known by all that it can be cut off by, and when it was issued.
  const { issuedAtSeconds } = principal
  const known = [...cutOffs.map(({ key }) => key), issuedAtSeconds]
  const memory = token ?? known.join(' ')
  return { memory, token, cutOffs, issuedAtSeconds }
}
