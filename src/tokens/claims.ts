/** Converts the claims of a verified token to a principal. */
import type { Principal } from '../identity/principal.ts'
import { tokenIdHash } from '../identity/token-id.ts'
import { type Claims, claimsSchema } from '../validators/claims.ts'
import type { IssuerConfig } from '../validators/issuer.ts'
import { own } from './jws.ts'
import { type ClaimName, rejected } from './rejection.ts'

export interface ClaimsOptions {
  readonly nowMs: number
  /** Whether the issuer is this gateway. Only then is `sub_iss` read. */
  readonly isOwn: boolean
}

/**
 * Checks the claims of a token with a verified signature, and returns its principal. Throws
 * `Denied`, which names the claim. A token that is bound to a key (`cnf`, RFC 7800) by anything but
 * its thumbprint (RFC 9449 section 6.1) is refused: without the proof, the binding would have no
 * effect. Does NOT check `iss`, which selected `issuer`, nor the proof of possession.
 */
export async function principalFrom(
  payload: Readonly<Record<string, unknown>>,
  issuer: IssuerConfig,
  { nowMs, isOwn }: ClaimsOptions,
): Promise<Principal> {
  const claims = read(payload, issuer, isOwn)
  const ours = typeof issuer.audience === 'string' ? [issuer.audience] : issuer.audience
  if (!claims.aud.some((audience) => ours.includes(audience))) throw rejected('aud')
  refuseTimes(claims, issuer, nowMs / 1000)
  const { sub, jti, exp, iat } = claims
  return {
    issuer: claims.sub_iss ?? issuer.issuer,
    tokenIssuer: issuer.issuer,
    subject: sub,
    client: claims.client_id,
    tenant: claims.tenant,
    session: claims.sid,
    roles: claims.roles,
    scopes: claims.scope,
    tokenId: jti,
    tokenIdHash: jti === undefined ? undefined : await tokenIdHash(issuer.issuer, jti),
    confirmation: claims.cnf?.jkt,
    issuedAtSeconds: Math.floor(iat),
    expiresAtSeconds: exp,
  }
}

/** Reads the claims. Some providers use `azp` and `scp` for `client_id` and `scope`. */
function read(
  payload: Readonly<Record<string, unknown>>,
  issuer: IssuerConfig,
  isOwn: boolean,
): Claims {
  const claim = (name: string, alias?: string) =>
    alias === undefined || Object.hasOwn(payload, name) ? own(payload, name) : own(payload, alias)
  const parsed = claimsSchema.safeParse({
    sub: claim('sub'),
    aud: claim('aud'),
    exp: claim('exp'),
    iat: claim('iat'),
    nbf: claim('nbf'),
    jti: claim('jti'),
    scope: claim('scope', 'scp'),
    roles: claim(issuer.rolesClaim),
    tenant: claim(issuer.tenantClaim),
    sid: claim('sid'),
    client_id: claim('client_id', 'azp'),
    sub_iss: isOwn ? claim('sub_iss') : undefined,
    cnf: claim('cnf'),
  })
  if (parsed.success) return parsed.data
  throw rejected(parsed.error.issues[0]?.path[0] as ClaimName, { cause: parsed.error })
}

/** RFC 7519 sections 4.1.4 to 4.1.6. */
function refuseTimes(
  { exp, iat, nbf }: Claims,
  { clockTolerance, maxTokenAge }: IssuerConfig,
  nowSeconds: number,
): void {
  if (nowSeconds >= exp + clockTolerance) throw rejected('exp')
  if (nbf !== undefined && nbf > nowSeconds + clockTolerance) throw rejected('nbf')
  if (iat > nowSeconds + clockTolerance) throw rejected('iat')
  if (iat > exp || exp - iat > maxTokenAge) throw rejected('lifetime')
}
