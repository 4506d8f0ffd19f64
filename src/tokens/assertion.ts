/** What the gateway tells the origin, so that the origin can verify instead of trust. */
import { SignJWT } from 'jose'
import { Misconfigured } from '../errors.ts'
import type { Principal } from './principal.ts'
import { activeKey, importSigningKey, type SigningJwk } from './signing-keys.ts'

/** Not `at+jwt`: an assertion that leaks from an origin opens no gateway (RFC 8725 section 3.11). */
export const ASSERTION_TYPE = 'origin-assertion+jwt'
/** Long enough for a slow origin to begin, too short to be worth stealing. */
export const ASSERTION_TTL_SECONDS = 60
/** What is left, at least, of an assertion that is sent. */
export const ASSERTION_MIN_REST_SECONDS = 30

export interface AssertionSigner {
  /**
   * A compact JWS that is good for at least 30 s more. Rejects with `Misconfigured` if no key may
   * sign now, or the one that may is none.
   */
  sign(principal: Principal): Promise<string>
}

export interface AssertionSignerOptions {
  /** Private keys; the one that is active signs. */
  readonly keys: readonly SigningJwk[]
  /** `iss`: the gateway's public URL. */
  readonly issuer: string
  /** `aud`: the origin. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

interface Signed {
  readonly assertion: string
  readonly reusableUntilMs: number
}

/**
 * Signs who the caller is, for one origin and 60 s: `iss`, `aud`, `sub`, `iat`, `exp`, `jti`, and
 * `client_id`, `scope`, `roles`, `tenant` where the caller has them. `sub` is unique only together
 * with `sub_iss`, the issuer that vouched for it. An assertion is remembered with its principal
 * object and sent again while 30 s are left of it, so a caller with a cached token costs one
 * signature in half a minute; its `jti` names the assertion, not the request.
 */
export function createAssertionSigner({
  keys,
  issuer,
  audience,
  now = Date.now,
}: AssertionSignerOptions): AssertionSigner {
  const signed = new WeakMap<Principal, Signed>()

  async function signAnew(principal: Principal, nowMs: number): Promise<string> {
    const jwk = activeKey(keys, nowMs)
    if (jwk === undefined) throw new Misconfigured('SIGNING_KEYS', ['none may sign now'])
    const signingKey = await importSigningKey(jwk)
    const issuedAt = Math.floor(nowMs / 1000)
    const assertion = await new SignJWT({
      sub_iss: principal.issuer,
      client_id: principal.client,
      scope: principal.scopes.length > 0 ? principal.scopes.join(' ') : undefined,
      roles: principal.roles.length > 0 ? principal.roles : undefined,
      tenant: principal.tenant,
    })
      .setProtectedHeader({ alg: signingKey.alg, kid: signingKey.kid, typ: ASSERTION_TYPE })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject(principal.subject)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ASSERTION_TTL_SECONDS)
      .setJti(crypto.randomUUID())
      .sign(signingKey.privateKey)
    const reusableSeconds = ASSERTION_TTL_SECONDS - ASSERTION_MIN_REST_SECONDS
    signed.set(principal, { assertion, reusableUntilMs: (issuedAt + reusableSeconds) * 1000 })
    return assertion
  }

  return {
    async sign(principal) {
      const nowMs = now()
      const last = signed.get(principal)
      if (last !== undefined && nowMs <= last.reusableUntilMs) return last.assertion
      return signAnew(principal, nowMs)
    },
  }
}
