/** Signs the principal of a request for the origin, so that the origin can verify the caller. */
import { attached } from '../../isolate/attached.ts'
import { loginOf, type Principal } from '../principal.ts'
import { loginClaims } from './login.ts'
import { signJwt } from './sign-jwt.ts'
import { activeSigningKey, type SigningJwk } from './signing-keys.ts'

/** Not `at+jwt`: the gateway refuses a leaked assertion (RFC 8725 section 3.11). */
const ASSERTION_TYPE = 'origin-assertion+jwt'
/** Long enough for a slow origin to start, and too short to be useful to a thief. */
const TTL_SECONDS = 60
/** An assertion is sent again for this time. The rest of its life is for the origin. */
const REUSABLE_SECONDS = 30
/** All of `identityHeaders` together. Many servers accept 8 KiB for all headers of a request. */
const MAX_CHOSEN_CHARS = 2_048

export interface AssertionSigner {
  /** Returns a compact JWS, valid for 30 s or more. Rejects with `Unavailable` without a key. */
  sign(principal: Principal): Promise<string>
}

export interface AssertionSignerOptions {
  readonly keys: readonly SigningJwk[]
  /** `iss`: the gateway's public URL. */
  readonly issuer: string
  /** `aud`: the origin. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/**
 * Creates a signer of assertions for one origin. An assertion is valid for 60 s. `sub` is unique
 * only together with `sub_iss`, the issuer that vouches for it. `headers` has what `identityHeaders` of the policy
 * chose, unless it is longer than 2,048 characters: servers limit the size of a header.
 *
 * An assertion is cached with its principal object and sent again for 30 s. A caller with a cached
 * token therefore costs one signature in 30 s. The `jti` identifies the assertion, not the request.
 */
export function createAssertionSigner({
  keys,
  issuer,
  audience,
  now = () => Date.now(),
}: AssertionSignerOptions): AssertionSigner {
  const signed = attached<
    Principal,
    { readonly assertion: string; readonly reusableUntilMs: number }
  >()

  async function signAnew(principal: Principal, nowMs: number): Promise<string> {
    const { alg, kid, privateKey } = await activeSigningKey(keys, nowMs)
    const issuedAt = Math.floor(nowMs / 1000)
    const claims = {
      sub_iss: principal.issuer,
      client_id: principal.client,
      scope: principal.scopes.length > 0 ? principal.scopes.join(' ') : undefined,
      roles: principal.roles.length > 0 ? principal.roles : undefined,
      tenant: principal.tenant,
      sid: principal.session,
      headers: chosenClaims(principal),
      ...loginClaims(loginOf(principal)),
      iss: issuer,
      aud: audience,
      sub: principal.subject,
      iat: issuedAt,
      exp: issuedAt + TTL_SECONDS,
      jti: crypto.randomUUID(),
    }
    const assertion = await signJwt(claims, { alg, kid, typ: ASSERTION_TYPE }, privateKey)
    signed(principal, { assertion, reusableUntilMs: (issuedAt + REUSABLE_SECONDS) * 1000 })
    return assertion
  }

  return {
    async sign(principal) {
      const nowMs = now()
      const last = signed(principal)
      if (last !== undefined && nowMs <= last.reusableUntilMs) return last.assertion
      return signAnew(principal, nowMs)
    },
  }
}

/** Returns the chosen claims by the lower-case name of their header, encoded as there. */
function chosenClaims({ headers }: Principal): Readonly<Record<string, string>> | undefined {
  if (headers === undefined) return undefined
  const length = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return length > MAX_CHOSEN_CHARS ? undefined : Object.fromEntries(headers)
}
