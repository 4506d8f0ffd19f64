/** From the claims of a verified token to a principal. */
import type { IssuerConfig } from '../config.ts'
import { type Claims, claimsSchema } from '../validators/claims.ts'
import { own } from './jws.ts'
import type { Principal } from './principal.ts'
import { type ClaimName, rejected } from './rejection.ts'
import { tokenIdHash } from './token-id.ts'

/**
 * Checks the claims of a token whose signature is good, and makes the principal. Throws `Denied`
 * that names the claim. A token that is bound to a key of its bearer (`cnf`, RFC 7800) is refused:
 * to take it without the proof would undo the binding (RFC 9449 section 7.1, RFC 8705 section 3).
 * Does NOT look at `iss`, which chose `issuer`.
 */
export async function principalFrom(
  payload: Readonly<Record<string, unknown>>,
  issuer: IssuerConfig,
  nowMs: number,
): Promise<Principal> {
  if (Object.hasOwn(payload, 'cnf')) throw rejected('cnf')
  const claims = read(payload, issuer)
  const ours = typeof issuer.audience === 'string' ? [issuer.audience] : issuer.audience
  if (!claims.aud.some((audience) => ours.includes(audience))) throw rejected('aud')
  refuseTimes(claims, issuer, nowMs / 1000)
  const { sub, jti, exp, iat } = claims
  return {
    issuer: issuer.issuer,
    tokenIssuer: issuer.issuer,
    subject: sub,
    client: claims.client_id,
    tenant: claims.tenant,
    session: claims.sid,
    roles: claims.roles,
    scopes: claims.scope,
    tokenId: jti,
    tokenIdHash: jti === undefined ? undefined : await tokenIdHash(issuer.issuer, jti),
    confirmation: undefined,
    issuedAtSeconds: Math.floor(iat),
    expiresAtSeconds: exp,
  }
}

/** `azp` and `scp` are what some providers call `client_id` and `scope`. */
function read(payload: Readonly<Record<string, unknown>>, issuer: IssuerConfig): Claims {
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
  })
  if (parsed.success) return parsed.data
  throw rejected(parsed.error.issues[0]?.path[0] as ClaimName, { cause: parsed.error })
}

/** RFC 7519 sections 4.1.4 to 4.1.6, with the issuer's tolerance at every clock's edge. */
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
