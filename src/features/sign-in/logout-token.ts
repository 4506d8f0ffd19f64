/** The claims of a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.4). */
import * as z from 'zod/mini'
import { readOwnMember, readPayload } from '../../access/tokens/jws.ts'
import { tokenId } from '../../validators/claims.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import { absentIfNull, text } from '../../validators/schema-parts.ts'
import { signInRefused } from './refused.ts'

/** What a logout token ends: a session of the provider, or all sessions of a user. */
export interface LogoutToken {
  readonly providerSubject: string | undefined
  readonly providerSession: string | undefined
  /** `jti`. */
  readonly id: string
  readonly expiresAtSeconds: number
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** A token is sent at once. One that is valid for longer could be replayed for longer. */
const MAX_LIFE_SECONDS = 3_600

const time = z.number().check(z.minimum(0))

const claims = z.looseObject({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  iat: time,
  exp: absentIfNull(time),
  jti: tokenId,
  events: z.looseObject({ [EVENT]: z.looseObject({}) }),
  sub: absentIfNull(text(512)),
  sid: absentIfNull(text(512)),
  // A token with it could be an ID token.
  nonce: z.optional(z.undefined()),
})

interface LogoutRules extends Pick<IssuerConfig, 'issuer' | 'clockTolerance' | 'logoutTokenExp'> {
  /** The client of the gateway. */
  readonly audience: string
}

/** Returns what a verified logout token ends. Throws `Denied` (`sign_in_refused`). */
export function logoutIn(
  payload: Readonly<Record<string, unknown>>,
  { issuer, audience, clockTolerance, logoutTokenExp }: LogoutRules,
  nowSeconds: number,
): LogoutToken {
  const parsed = z.safeParse(claims, payload)
  if (!parsed.success)
    throw signInRefused(
      `logout_token_${(parsed.error.issues[0]?.path[0] as keyof typeof claims.shape) ?? 'claims'}`,
    )
  const { iss, aud, iat, exp, jti, sub, sid } = parsed.data
  if (iss !== issuer) throw signInRefused('logout_token_iss')
  if (![aud].flat().includes(audience)) throw signInRefused('logout_token_aud')
  if (exp === undefined && logoutTokenExp !== 'optional') throw signInRefused('logout_token_exp')
  // A token without `exp` lives as long as one with it may. Each is accepted once in this time.
  const expiresAtSeconds = exp ?? iat + MAX_LIFE_SECONDS
  if (nowSeconds >= expiresAtSeconds + clockTolerance) throw signInRefused('logout_token_exp')
  if (iat > nowSeconds + clockTolerance || expiresAtSeconds - iat > MAX_LIFE_SECONDS)
    throw signInRefused('logout_token_iat')
  if (sub === undefined && sid === undefined) throw signInRefused('logout_token_sub')
  return { providerSubject: sub, providerSession: sid, id: jti, expiresAtSeconds }
}

/**
 * Returns the unverified issuer of a token, which selects the provider that verifies it. Throws `Denied`
 * (`sign_in_refused`) for a text that is no token.
 */
export function issuerOfLogout(token: string): unknown {
  try {
    return readOwnMember(readPayload(token), 'iss')
  } catch {
    throw signInRefused('logout_token_form')
  }
}
