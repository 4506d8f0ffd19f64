/** Maps every reason to its problem, in one exhaustive switch, with as few details as the RFC allows. */
import { DPOP_ALGORITHMS } from '../crypto/dpop-algorithms.ts'
import type { Check } from './checks.ts'
import { type Problem, problem, problemOfFeature } from './problem.ts'
import type { Denial, Dependency, Fault } from './reasons.ts'
import { retryAfter } from './retry-after.ts'
import { loginInWords, stepUpParameters } from './step-up.ts'

const BEARER = 'Bearer realm="portcullis"'
/** A DPoP challenge (RFC 9449 section 7.1) has no `error` if the request has no credentials. */
const DPOP = 'DPoP realm="portcullis"'
const DPOP_ALGS = `algs="${DPOP_ALGORITHMS.join(' ')}"`

/** Requests that are not well formed in a way that their sender can correct. */
const MALFORMED: Readonly<Partial<Record<Check<'malformed_request'>, string>>> = {
  websocket_version: 'The version of WebSocket must be 13 (RFC 6455).',
  mcp_version: 'The setting `versions` of this server does not list this MCP-Protocol-Version.',
}

/**
 * `usesDpop`: the request has the scheme `DPoP`, or the route requires a proof. Then the challenges for its
 * token have this scheme (RFC 9449 section 7.1).
 */
export function problemOfDenial(denial: Denial, usesDpop = false): Problem {
  /** Challenges to present another token. `parameters` follow the scheme. */
  const challengeOf = (parameters: string) =>
    usesDpop ? `${DPOP}, ${parameters}, ${DPOP_ALGS}` : `${BEARER}, ${parameters}`
  switch (denial.code) {
    case 'missing_token':
      // RFC 6750 section 3.1: no error attribute if the request has no credentials.
      return denial.proof
        ? problem('missing_token', 'This resource needs a token with a proof of possession.', {
            challenge: `${DPOP}, ${DPOP_ALGS}`,
          })
        : problem('missing_token', 'This resource needs a bearer token.', { challenge: BEARER })
    case 'token_rejected':
    case 'token_revoked':
      // The same response for all of these, so that a caller cannot find out which check failed.
      return problem('invalid_token', `The ${usesDpop ? '' : 'bearer '}token is not valid here.`, {
        challenge: challengeOf('error="invalid_token"'),
      })
    case 'invalid_dpop_proof':
      return problem(
        'invalid_dpop_proof',
        'This request needs a valid proof that its token is held by its owner.',
        { challenge: `${DPOP}, error="invalid_dpop_proof", ${DPOP_ALGS}` },
      )
    case 'use_dpop_nonce':
      // RFC 9449 section 9.
      return problem('use_dpop_nonce', 'The DPoP proof must contain the nonce of this answer.', {
        challenge: `${DPOP}, error="use_dpop_nonce", ${DPOP_ALGS}`,
        headers: { 'DPoP-Nonce': denial.nonce },
      })
    case 'ambiguous_credentials':
      // RFC 6750 section 3.1: more than one method for including an access token.
      return problem('ambiguous_credentials', 'The request has more than one credential.', {
        challenge: challengeOf('error="invalid_request"'),
      })
    case 'cross_origin_request':
      return problem('cross_origin_request', 'A page of another origin may not send this request.')
    case 'sign_in_required':
      return problem('sign_in_required', 'This resource needs a signed-in user.', {
        challenge: denial.demand ? `${BEARER}, ${stepUpParameters(denial.demand)}` : BEARER,
      })
    case 'insufficient_user_authentication':
      return problem(
        'insufficient_user_authentication',
        `This request needs a login ${loginInWords(denial.demand)}.`,
        {
          challenge:
            denial.proof && !usesDpop
              ? `${DPOP}, ${stepUpParameters(denial.demand)}`
              : challengeOf(stepUpParameters(denial.demand)),
        },
      )
    case 'sign_in_refused':
      return problem('sign_in_refused', 'The sign-in could not be completed.')
    case 'oauth_refused':
      // The OAuth routes have their own error format. This is for other routes.
      return problem('oauth_error', denial.error)
    case 'permission_missing':
      return problem(
        'insufficient_permission',
        `This request needs the permission ${denial.permission}.`,
        { challenge: challengeOf(`error="insufficient_scope", scope="${denial.permission}"`) },
      )
    case 'call_refused':
      if (denial.what === 'spelling')
        return problem('insufficient_permission', 'The URI is not in its normal form (RFC 3986).')
      // The same response for unknown and forbidden calls. No permission would allow them.
      return problem('insufficient_permission', `This ${denial.what} is not allowed here.`)
    case 'relation_missing':
    case 'relation_unknown':
      // Does not reveal the relation, or whether the object exists.
      return problem('insufficient_permission', 'This is not allowed.')
    case 'banned':
      return problem('banned', 'Requests from here are refused for a while.', {
        headers: retryAfter(denial),
      })
    case 'rate_limited':
      return problem(
        'rate_limited',
        `The limit "${denial.limit}"${planOf(denial)} is exhausted${untilOf(denial)}.`,
        { headers: retryAfter(denial), limited: describeLimited(denial) },
      )
    case 'signature_matched':
      // Does not reveal which signature matched, because an attacker could use it to avoid a match.
      return problem('input_refused', 'The input is not accepted here.')
    case 'ambiguous_path':
      // RFC 9112 section 3.
      return denial.check === 'too_long'
        ? problem('uri_too_long', 'The URI is too long.')
        : problem('ambiguous_path', 'The path can be read in more than one way.')
    case 'malformed_request':
      return problem(
        'malformed_request',
        MALFORMED[denial.check] ?? 'The request is not well formed.',
        // RFC 6455 section 4.2.2.
        denial.check === 'websocket_version'
          ? { headers: { 'Sec-WebSocket-Version': '13' } }
          : undefined,
      )
    case 'invalid_input':
      return problem('invalid_input', 'The input does not match the schema of this route.', {
        errors: denial.errors,
      })
    case 'payload_too_large':
      return problem('payload_too_large', `The body may have at most ${denial.maxBytes} bytes.`)
    case 'unsupported_media_type':
      // RFC 9110 sections 15.5.16 and 12.5.3.
      return denial.encoded
        ? problem('unsupported_media_type', 'The body must not be compressed.', {
            headers: { 'Accept-Encoding': 'identity' },
          })
        : problem('unsupported_media_type', `The body must be ${denial.expected}.`, {
            headers: { Accept: denial.expected },
          })
    case 'not_found':
      return problem('not_found', 'There is no such resource.')
    case 'method_not_allowed':
      return problem('method_not_allowed', 'The resource does not support this method.', {
        headers: { Allow: denial.allow.join(', ') },
      })
    case 'conflict':
      return problem('conflict', 'Other requests changed the resource at the same time.')
    case 'refused_by_feature':
      return problemOfFeature(denial.problem, denial.detail, denial.headers)
    default:
      return denial satisfies never
  }
}

type RateLimited = Extract<Denial, { readonly code: 'rate_limited' }>

const planOf = ({ plan }: RateLimited): string =>
  plan === undefined ? '' : ` of the plan "${plan}"`

/** Returns the end of a quota's day or month, so that a caller need not compute it from `Retry-After`. */
const untilOf = ({ untilMs }: RateLimited): string =>
  untilMs === undefined ? '' : ` until ${timeOf(untilMs)}`

const timeOf = (ms: number): string => new Date(ms).toISOString().replace('.000', '')

const describeLimited = ({
  limit,
  plan,
  untilMs,
}: RateLimited): NonNullable<Problem['limited']> => ({
  limit,
  ...(plan !== undefined && { plan }),
  ...(untilMs !== undefined && { renewsAt: timeOf(untilMs) }),
})

/** How a dependency failed, as `Unavailable` describes it. */
interface Failure {
  readonly dependency: Dependency
  readonly fault: Fault
  readonly retryAfterSeconds: number
  readonly shortCircuited: boolean
  readonly detail?: string | undefined
}

export function problemOfFailure(failure: Failure): Problem {
  const { dependency, fault, shortCircuited } = failure
  const headers = retryAfter(failure)
  if (dependency === 'gateway')
    return problem('overloaded', 'Too many requests are waiting.', { headers })
  if (dependency !== 'origin') {
    const detail = failure.detail ?? 'The request cannot be decided at the moment.'
    return problem('dependency_unavailable', detail, { headers })
  }
  const details = shortCircuited ? { headers } : undefined
  if (fault === 'timeout')
    return problem('origin_timeout', 'The origin did not answer in time.', details)
  return problem('origin_unreachable', failure.detail ?? describeFault(fault), details)
}

function describeFault(fault: Fault): string {
  switch (fault) {
    case 'too_large':
      return 'The header fields of the response of the origin are too large.'
    case 'malformed':
      return 'The response of the origin is not valid HTTP.'
    default:
      return 'The origin could not be reached.'
  }
}
