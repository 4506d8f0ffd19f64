import { Denied } from '../../errors.ts'
import type { OAuthErrorCode, RejectionDetail } from '../../problems/reasons.ts'
import type { Claims } from '../../validators/claims.ts'
import type { Signer } from '../principal.ts'

/** The check that a token failed. Never sent to the client: it would help an attacker. */
export type TokenCheck =
  // The Authorization header and the compact serialization (RFC 6750, RFC 7515 section 7.1).
  | 'length'
  | 'authorization_grammar'
  | 'empty'
  | 'segments'
  | 'base64url'
  | 'api_key_checksum'
  // The issuer does not list the source that the token was in.
  | 'source'
  // References: the store has no record of this one.
  | 'reference_unknown'
  // The record says that the secret was revoked or replaced.
  | 'revoked'
  // Tokens that their issuer verifies: it does not know this one, or has ended it (RFC 7662).
  | 'inactive'
  | 'token_type'
  // A bound token without its proof, or a proof that does not match the token (RFC 9449).
  | 'dpop_binding'
  // The protected header (RFC 7515 section 4).
  | 'header_encoding'
  | 'header_json'
  | 'alg'
  | 'crit'
  | 'b64'
  | 'kid'
  | 'typ'
  // The key and the signature.
  | 'kid_unknown'
  | 'kid_missing'
  // Several keys of the set have this `kid` and algorithm.
  | 'kid_duplicate'
  | 'key_algorithm'
  | 'signature'
  // The payload (RFC 7519 section 4, RFC 9068 section 4).
  | 'payload_encoding'
  | 'payload_json'
  | 'iss'
  | 'lifetime'
  // Rules of the issuer's configuration: `refuse` and `require`.
  | 'refused_claim'
  | 'required_claim'
  | ClaimName

/** The claims that the gateway reads. */
export type ClaimName = keyof Claims

/** Creates the refusal of a token. `cause` never leaves the process. */
export function rejected(check: TokenCheck, options?: ErrorOptions): Denied {
  return new Denied({ code: 'token_rejected', check }, options)
}

/**
 * Returns the result of `check`, a check of a token that is authentic. Its refusals name the signer: the
 * token is no guess, and its sender may only be misconfigured.
 */
export async function ofSigner<Value>(
  signer: Signer,
  check: () => Value | Promise<Value>,
): Promise<Value> {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') throw error
    throw new Denied({ ...error.denial, signer }, { cause: error.cause })
  }
}

/** The longest text of a value in an audit event. */
const MAX_SHOWN_CHARS = 200

/** Returns a value of a token or of the configuration as printable ASCII of at most 200 characters. */
export function shown(value: unknown): string {
  // Longer texts are cut before they are escaped, because a sender chooses their length.
  const text = typeof value === 'string' ? value.slice(0, MAX_SHOWN_CHARS) : value
  const json = JSON.stringify(text) ?? 'none'
  const ascii = json.slice(0, 2 * MAX_SHOWN_CHARS).replace(UNPRINTABLE, escaped)
  return ascii.length <= MAX_SHOWN_CHARS ? ascii : `${ascii.slice(0, MAX_SHOWN_CHARS - 3)}...`
}

const UNPRINTABLE = /[^\x20-\x7e]/g
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Creates the refusal of a token, with what the check found and expected. */
export function rejectedFor(
  check: 'alg' | 'typ' | 'iss' | 'aud',
  seen: unknown,
  expected: readonly string[],
): Denied {
  const detail: RejectionDetail = {
    seen: shown(seen),
    expected: shown(expected),
    verified: check === 'aud' || check === 'typ',
  }
  return new Denied({ code: 'token_rejected', check, detail })
}

/**
 * Creates the refusal of a request to `/oauth/*`. `error` goes to the client. `check` names the
 * precise reason and goes to the audit trail only.
 */
export function oauthRefused(error: OAuthErrorCode, check: string, options?: ErrorOptions): Denied {
  return new Denied({ code: 'oauth_refused', error, check }, options)
}
