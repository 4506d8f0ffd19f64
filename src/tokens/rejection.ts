import { Denied } from '../errors.ts'
import type { OAuthErrorCode } from '../problems/reasons.ts'

/** The check that a token failed. Never sent to the client: it would help an attacker. */
export type TokenCheck =
  // The Authorization header and the compact serialization (RFC 6750, RFC 7515 section 7.1).
  | 'length'
  | 'authorization_grammar'
  | 'empty'
  | 'segments'
  | 'base64url'
  | 'api_key_checksum'
  // References: the store has no record of this one.
  | 'reference_unknown'
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
  | 'key_algorithm'
  | 'signature'
  // The payload (RFC 7519 section 4, RFC 9068 section 4).
  | 'payload_encoding'
  | 'payload_json'
  | 'iss'
  | 'lifetime'
  | ClaimName

/** The claims that the gateway reads. */
export type ClaimName =
  | 'sub'
  | 'aud'
  | 'exp'
  | 'iat'
  | 'nbf'
  | 'jti'
  | 'scope'
  | 'roles'
  | 'tenant'
  | 'sid'
  | 'client_id'
  | 'sub_iss'
  | 'cnf'

/** Creates the refusal of a token. `cause` never leaves the process. */
export function rejected(check: TokenCheck, options?: ErrorOptions): Denied {
  return new Denied({ code: 'token_rejected', check }, options)
}

/**
 * Creates the refusal of a request to `/oauth/*`. `error` goes to the client. `check` names the
 * precise reason and goes to the audit trail only.
 */
export function oauthRefused(error: OAuthErrorCode, check: string, options?: ErrorOptions): Denied {
  return new Denied({ code: 'oauth_refused', error, check }, options)
}
