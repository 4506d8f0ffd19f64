/** Refusals of the authorization server, with the error codes of the RFCs. */
import { Denied, type OAuthErrorCode } from '../errors.ts'

/**
 * Creates the refusal of a request to `/oauth/*`. `error` goes to the client (RFC 6749 section 5.2,
 * RFC 8693, RFC 8707, RFC 9449). `check` names the precise reason and goes to the audit trail only.
 */
export function oauthRefused(error: OAuthErrorCode, check: string, options?: ErrorOptions): Denied {
  return new Denied({ code: 'oauth_refused', error, check }, options)
}
