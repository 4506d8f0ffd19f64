/** Maps refusals at `/oauth/*` to their wire form (RFC 6749 section 5.2). */
import type { Context } from 'hono'
import { Denied, Unavailable } from '../../../errors.ts'
import { NO_STORE } from '../../../http/response-headers.ts'
import { problemOf } from '../../../middleware/problem-handler.ts'
import type { Denial, OAuthErrorCode } from '../../../problems/reasons.ts'
import { retryAfter } from '../../../problems/retry-after.ts'
import type { CodeFlowErrorCode, Descriptions } from '../descriptions.ts'

type OAuthWireCode = OAuthErrorCode | 'server_error' | 'temporarily_unavailable'

interface OAuthProblem {
  readonly status: number
  readonly error: OAuthWireCode
  readonly headers?: Readonly<Record<string, string>>
}

/** One description per code, with the characters that RFC 6749 section 5.2 allows. */
const DESCRIPTIONS: Readonly<Record<Exclude<OAuthWireCode, CodeFlowErrorCode>, string>> = {
  invalid_request: 'The request is malformed or not possible.',
  invalid_client: 'Client authentication failed.',
  invalid_grant: 'The grant is not valid, or was not issued to this client.',
  unauthorized_client: 'This client may not do this.',
  unsupported_grant_type: 'This grant type is not supported.',
  unsupported_token_type: 'Tokens of this type cannot be revoked here.',
  invalid_scope: 'The requested scope is malformed, or exceeds what can be granted.',
  invalid_target: 'A requested resource is malformed, or not allowed for this client.',
  invalid_dpop_proof: 'The request requires a valid DPoP proof.',
  use_dpop_nonce: 'The DPoP proof must contain the nonce of this response.',
  access_denied: 'The request was refused.',
  server_error: 'The request failed because of a defect of the server.',
  temporarily_unavailable: 'The request cannot be handled now. Retry later.',
}

/** RFC 7617 section 2. On every 401, because RFC 9110 section 15.5.2 requires a challenge there. */
const CHALLENGE = 'Basic realm="portcullis", charset="UTF-8"'

/** Headers of every response (RFC 6749 section 5.1). */
export const OAUTH_HEADERS = { ...NO_STORE, Pragma: 'no-cache' } as const

/** Responds to a refusal. The precise reason is only in the audit event, except where a check has a description. */
export function toOAuthError(error: Error, c: Context, more?: Descriptions): Response {
  const { status, error: code, description, headers } = oauthProblemOf(error, more)
  const body = { error: code, error_description: description }
  return new Response(c.req.method === 'HEAD' ? null : JSON.stringify(body), {
    status,
    headers: { 'Content-Type': 'application/json', ...OAUTH_HEADERS, ...headers },
  })
}

/** Returns the wire form of an error. */
export function oauthProblemOf(
  error: Error,
  more: Descriptions = {},
): OAuthProblem & { readonly description: string } {
  const problem = problemWithCode(error)
  const denial = error instanceof Denied ? error.denial : undefined
  const known = denial?.code === 'oauth_refused' ? more[denial.check] : undefined
  const ofCode: Readonly<Partial<Record<OAuthWireCode, string>>> = { ...DESCRIPTIONS, ...more }
  return { ...problem, description: known ?? ofCode[problem.error] ?? DESCRIPTIONS.invalid_request }
}

function problemWithCode(error: Error): OAuthProblem {
  if (error instanceof Denied) return ofDenial(error.denial)
  if (error instanceof Unavailable) {
    // RFC 7009 section 2.2.1, and RFC 6749 section 4.1.2.1 for the code.
    return { status: 503, error: 'temporarily_unavailable', headers: retryAfter(error) }
  }
  // Logs a defect, as for the routes of the policy.
  const { status } = problemOf(error)
  return { status, error: 'server_error' }
}

function ofDenial(denial: Denial): OAuthProblem {
  switch (denial.code) {
    case 'oauth_refused':
      return denial.error === 'invalid_client'
        ? { status: 401, error: denial.error, headers: { 'WWW-Authenticate': CHALLENGE } }
        : { status: 400, error: denial.error }
    case 'invalid_dpop_proof':
      return { status: 400, error: 'invalid_dpop_proof' }
    case 'use_dpop_nonce':
      // RFC 9449 section 8.
      return { status: 400, error: 'use_dpop_nonce', headers: { 'DPoP-Nonce': denial.nonce } }
    case 'banned':
      return { status: 403, error: 'access_denied', headers: retryAfter(denial) }
    case 'rate_limited':
      // RFC 6749 has no code for a rate limit here. This one means that a later request may succeed.
      return { status: 429, error: 'temporarily_unavailable', headers: retryAfter(denial) }
    case 'payload_too_large':
      return { status: 413, error: 'invalid_request' }
    case 'method_not_allowed':
      return { status: 405, error: 'invalid_request', headers: { Allow: denial.allow.join(', ') } }
    case 'missing_token':
    case 'token_rejected':
    case 'token_revoked':
    case 'permission_missing':
    case 'relation_missing':
    case 'relation_unknown':
    case 'call_refused':
    case 'signature_matched':
    case 'ambiguous_credentials':
    case 'cross_origin_request':
    case 'sign_in_required':
    case 'insufficient_user_authentication':
    case 'sign_in_refused':
    case 'ambiguous_path':
    case 'malformed_request':
    case 'invalid_input':
    case 'unsupported_media_type':
    case 'not_found':
    case 'conflict':
    case 'refused_by_feature':
      return { status: 400, error: 'invalid_request' }
    default:
      return denial satisfies never
  }
}
