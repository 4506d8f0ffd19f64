/** Access grants: what an access token says about its bearer, and the port that issues it. */

import * as z from 'zod/mini'
import type { RedisKeys } from '../../redis/keys.ts'
import type { SigningAlgorithm } from '../../validators/signing-jwk.ts'
import type { Principal } from '../principal.ts'
import { deriveRevocationKeys } from '../revocation/revocation.ts'
import { loginSchema } from './login-schema.ts'

const names = z.readonly(z.array(z.string()))

/** What an access token says about its bearer (RFC 9068 section 2.2). */
export const accessGrantSchema = z.strictObject({
  /** `sub`. */
  subject: z.string(),
  /** `sub_iss`: the issuer that vouches for the subject. Undefined: the gateway itself. */
  subjectIssuer: z.optional(z.string()),
  /** `client_id`. */
  client: z.string(),
  tenant: z.optional(z.string()),
  /** `sid`: the session, for tokens that a refresh token can renew. */
  session: z.optional(z.string()),
  roles: names,
  scopes: names,
  /** `aud`. */
  audiences: z.readonly(z.array(z.string()).check(z.minLength(1))),
  /** How and when the user authenticated: `acr`, `amr`, `auth_time`. No refresh changes it. */
  login: z.optional(loginSchema),
  /** `cnf.jkt`: thumbprint of the key that the token is bound to (RFC 9449 section 6). */
  confirmation: z.optional(z.string()),
})

export type AccessGrant = Readonly<z.output<typeof accessGrantSchema>>

/**
 * Returns the principal of a granted token, as `authenticate` will create it. Without `issued`, it
 * has no token id, and its times are 0.
 */
export function principalOfGrant(
  grant: AccessGrant,
  tokenIssuer: string,
  issued?: IssuedToken,
): Principal {
  return {
    issuer: grant.subjectIssuer ?? tokenIssuer,
    tokenIssuer,
    subject: grant.subject,
    client: grant.client,
    tenant: grant.tenant,
    session: grant.session,
    roles: grant.roles,
    scopes: grant.scopes,
    tokenId: issued?.tokenId,
    tokenIdHash: issued?.tokenIdHash,
    confirmation: grant.confirmation,
    login: grant.login,
    issuedAtSeconds: issued?.issuedAtSeconds ?? 0,
    expiresAtSeconds: issued?.expiresAtSeconds ?? 0,
  }
}

/** Returns the keys of the revocation cutoffs that will cover a token of this grant. */
export async function deriveCutoffKeys(
  keys: RedisKeys,
  grant: AccessGrant,
  tokenIssuer: string,
): Promise<string[]> {
  const { revokedBefore } = await deriveRevocationKeys(keys, principalOfGrant(grant, tokenIssuer))
  return revokedBefore.map(({ key }) => key)
}

export type TokenFormat = 'jwt' | 'opaque'

/**
 * 32 unpredictable bytes. A token's id, which is public, and an opaque token, which is secret, are
 * derived from them. A seed is never stored, logged or sent.
 */
export type TokenSeed = Uint8Array

export interface IssueOptions {
  /** Default `jwt`. */
  readonly format?: TokenFormat | undefined
  /** The first active signing key with this algorithm signs. Default: the first active key. */
  readonly algorithm?: SigningAlgorithm | undefined
  /** Life of the token. Default: as configured. */
  readonly ttlSeconds?: number | undefined
  /** The end of the session, in seconds since the epoch. The token never lives longer. */
  readonly notAfterSeconds?: number | undefined
  /** With the same seed, a retry with the same grant gets the same token id. Default: random. */
  readonly seed?: TokenSeed | undefined
  /** `iat`, whole seconds since the epoch. Default: now. */
  readonly issuedAtSeconds?: number | undefined
}

export interface IssuedToken {
  readonly token: string
  readonly tokenId: string
  readonly tokenIdHash: string
  readonly issuedAtSeconds: number
  readonly expiresAtSeconds: number
}

/**
 * Port: issues access tokens. Throws:
 *
 * - `Unavailable` if an opaque token cannot be stored, or if no active key signs with the algorithm.
 * - `Denied` with `oauth_refused` / `invalid_grant` if the token would expire at once because of
 *   `notAfterSeconds`.
 * - `RangeError` if the life is not 300 to 3600 s.
 */
export interface TokenIssuer {
  issue(grant: AccessGrant, options?: IssueOptions): Promise<IssuedToken>
}
