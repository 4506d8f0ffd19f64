/** Converts the claims of a verified token to a principal. */

import { createLruMap } from '../../isolate/lru-map.ts'
import type { ClaimName } from '../../problems/checks.ts'
import { type Claims, claimsSchema } from '../../validators/claims.ts'
import { DEFAULT_SCOPE_USE, type IssuerConfig } from '../../validators/issuer.ts'
import type { Principal } from '../principal.ts'
import { tokenIdHash } from '../token-id.ts'
import type { IssuerRules } from './issuer-rules.ts'
import { readOwnMember } from './jws.ts'
import { readLogin } from './login.ts'
import { withGateway } from './narrowed.ts'
import { rejected, rejectedFor } from './rejection.ts'

export interface ClaimsOptions {
  readonly nowMs: number
  /** Whether the issuer is this gateway. Only then is `sub_iss` read. */
  readonly isOwn: boolean
  /**
   * Values of claims that a response of the issuer may lack (RFC 7662 section 2.2). Default: none, as
   * for a JWT. A token without `iat` then was issued at the beginning of time, so that every cutoff
   * revokes it, and may have any lifetime.
   */
  readonly defaults?: Readonly<Record<'exp' | 'jti', unknown>> & { readonly aud?: unknown }
}

/**
 * Checks the claims of a verified token, and returns its principal. Throws
 * `Denied`, which names the claim. A token that is bound to a key (`cnf`, RFC 7800) by anything but
 * its thumbprint (RFC 9449 section 6.1) is refused: without the proof, the binding would have no
 * effect. Does NOT check `iss`, which selected the issuer, nor the proof of possession.
 */
export async function principalFrom(
  payload: Readonly<Record<string, unknown>>,
  rules: IssuerRules,
  { nowMs, isOwn, defaults }: ClaimsOptions,
): Promise<Principal> {
  const { config } = rules
  const subjectIssuer = isOwn ? readOwnMember(payload, 'sub_iss') : undefined
  const read = rules.read(payload)
  const isDated = defaults === undefined || read.iat !== undefined
  if (defaults !== undefined) {
    read.aud ??= defaults.aud
    read.exp ??= defaults.exp
    read.jti ??= defaults.jti
    read.iat ??= 0
  }
  const parsed = claimsSchema.safeParse({ ...read, sub_iss: subjectIssuer })
  if (!parsed.success) {
    const name = parsed.error.issues[0]?.path[0] as ClaimName
    if (name === 'aud') throw rejectedFor(name, read.aud, [config.audience].flat())
    throw rejected(name, { cause: parsed.error })
  }
  const claims = parsed.data
  // A token of the gateway names it, or paths of it.
  const audiences = isOwn ? withGateway(claims.aud, config.issuer) : claims.aud
  rules.check(payload, { ...claims, aud: audiences })
  const { maxTokenAge } = config
  refuseTimes(claims, isDated ? maxTokenAge : Number.POSITIVE_INFINITY, config, nowMs / 1000)
  const { sub, jti, exp, iat } = claims
  const scopeUse = config.scopes ?? (isOwn ? undefined : DEFAULT_SCOPE_USE)
  // Scopes must not grant more because a map drops the roles that they would narrow.
  const isDropped = scopeUse === 'narrow' && claims.roles.length === 0 && rules.hasRoles(payload)
  return {
    issuer: claims.sub_iss ?? config.issuer,
    tokenIssuer: config.issuer,
    subject: sub,
    client: claims.client_id,
    tenant: claims.tenant,
    plan: claims.plan,
    session: claims.sid,
    roles: shared(claims.roles),
    scopes: shared(claims.scope),
    audiences: shared(audiences),
    scopeUse: isDropped ? 'ignore' : scopeUse,
    tokenId: jti,
    tokenIdHash: jti === undefined ? undefined : await tokenIdHash(config.issuer, jti),
    confirmation: claims.cnf?.jkt,
    issuedAtSeconds: Math.floor(iat),
    expiresAtSeconds: exp,
    headers: rules.headers(payload),
    login: readLogin(payload, nowMs / 1000, config.clockTolerance),
  }
}

/** A longer list is seldom equal to another one. */
const MAX_SHARED_CHARS = 1_000

/** The lists that tokens had last, by their text: most tokens of a cache have the same few. */
const lists = createLruMap<string, readonly string[]>({
  maxSize: 30 * MAX_SHARED_CHARS,
  sizeCalculation: (_list, { length }) => length,
})

/** Returns an equal list, which other principals may have too. It is frozen, so that no request changes the roles of another. */
function shared(list: readonly string[]): readonly string[] {
  Object.freeze(list)
  const text = JSON.stringify(list)
  if (text.length > MAX_SHARED_CHARS) return list
  const known = lists.get(text)
  if (known === undefined) lists.set(text, list)
  return known ?? list
}

/** RFC 7519 sections 4.1.4 to 4.1.6. */
function refuseTimes(
  { exp, iat, nbf }: Claims,
  maxTokenAge: number,
  { clockTolerance }: IssuerConfig,
  nowSeconds: number,
): void {
  if (nowSeconds >= exp + clockTolerance) throw rejected('exp')
  if (nbf !== undefined && nbf > nowSeconds + clockTolerance) throw rejected('nbf')
  if (iat > nowSeconds + clockTolerance) throw rejected('iat')
  if (iat > exp || exp - iat > maxTokenAge) throw rejected('lifetime')
}
