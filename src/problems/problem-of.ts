/** Maps every reason to its problem, in one exhaustive switch, with as few details as the RFC allows. */
import { DPOP_ALGORITHMS } from '../crypto/dpop-algorithms.ts'
import type { Problem } from './problem.ts'
import type { Denial, Dependency, Fault } from './reasons.ts'

/** Returns the problem for a denial. */
export function problemOfDenial(denial: Denial): Problem {
  switch (denial.code) {
    case 'missing_token':
      return {
        code: 'missing_token',
        status: 401,
        title: 'Authentication required',
        detail: denial.proof
          ? 'This resource needs a token with a proof of possession.'
          : 'This resource needs a bearer token.',
        // RFC 6750 section 3.1: no error attribute if the request has no credentials.
        challenge: denial.proof ? `${DPOP}, ${DPOP_ALGS}` : BEARER,
      }
    case 'token_rejected':
    case 'token_revoked':
      // The same response for all of these, so that a caller cannot find out which check failed.
      return {
        code: 'invalid_token',
        status: 401,
        title: 'Invalid token',
        detail: 'The bearer token is not valid here.',
        challenge: `${BEARER}, error="invalid_token"`,
      }
    case 'invalid_dpop_proof':
      return {
        code: 'invalid_dpop_proof',
        status: 401,
        title: 'Invalid DPoP proof',
        detail: 'This request needs a valid proof that its token is held by its owner.',
        challenge: `${DPOP}, error="invalid_dpop_proof", ${DPOP_ALGS}`,
      }
    case 'use_dpop_nonce':
      return {
        code: 'use_dpop_nonce',
        status: 401,
        title: 'DPoP nonce required',
        detail: 'The DPoP proof must contain the nonce of this answer.',
        // RFC 9449 section 9.
        challenge: `${DPOP}, error="use_dpop_nonce", ${DPOP_ALGS}`,
        headers: { 'DPoP-Nonce': denial.nonce },
      }
    case 'oauth_refused':
      // The OAuth routes have their own error format. This is for other routes that throw the same
      // denial.
      return {
        code: 'oauth_error',
        status: 400,
        title: 'OAuth error',
        detail: denial.error,
      }
    case 'permission_missing':
      return {
        code: 'insufficient_permission',
        status: 403,
        title: 'Insufficient permission',
        detail: `This request needs the permission ${denial.permission}.`,
        challenge: `${BEARER}, error="insufficient_scope", scope="${denial.permission}"`,
      }
    case 'call_refused':
      // The same response for unknown and forbidden calls. No permission would allow them.
      return {
        code: 'insufficient_permission',
        status: 403,
        title: 'Insufficient permission',
        detail: `This ${denial.what} is not allowed here.`,
      }
    case 'relation_missing':
    case 'relation_unknown':
      // Does not reveal the relation, or whether the object exists.
      return {
        code: 'insufficient_permission',
        status: 403,
        title: 'Insufficient permission',
        detail: 'This is not allowed.',
      }
    case 'banned':
      return {
        code: 'banned',
        status: 403,
        title: 'Banned',
        detail: 'Requests from here are refused for a while.',
        headers: { 'Retry-After': String(denial.retryAfterSeconds) },
      }
    case 'rate_limited':
      return {
        code: 'rate_limited',
        status: 429,
        title: 'Too many requests',
        detail: `The limit "${denial.limit}" is exhausted.`,
        headers: { 'Retry-After': String(denial.retryAfterSeconds) },
      }
    case 'signature_matched':
      // Does not reveal which signature matched, because an attacker could use it to avoid a match.
      return {
        code: 'input_refused',
        status: 403,
        title: 'Input refused',
        detail: 'The input is not accepted here.',
      }
    case 'ambiguous_path':
      return {
        code: 'ambiguous_path',
        status: 400,
        title: 'Ambiguous path',
        detail: 'The path can be read in more than one way.',
      }
    case 'malformed_request':
      return {
        code: 'malformed_request',
        status: 400,
        title: 'Malformed request',
        detail: 'The request is not well formed.',
      }
    case 'invalid_input':
      return {
        code: 'invalid_input',
        status: 422,
        title: 'Invalid input',
        detail: 'The input does not match the schema of this route.',
        errors: denial.errors,
      }
    case 'payload_too_large':
      return {
        code: 'payload_too_large',
        status: 413,
        title: 'Payload too large',
        detail: `The body may have at most ${denial.maxBytes} bytes.`,
      }
    case 'unsupported_media_type':
      return {
        code: 'unsupported_media_type',
        status: 415,
        title: 'Unsupported media type',
        detail: `The body must be ${denial.expected}.`,
        // RFC 9110 section 15.5.16.
        headers: { Accept: denial.expected },
      }
    case 'not_found':
      return {
        code: 'not_found',
        status: 404,
        title: 'Not found',
        detail: 'There is no such resource.',
      }
    case 'method_not_allowed':
      return {
        code: 'method_not_allowed',
        status: 405,
        title: 'Method not allowed',
        detail: 'The resource does not support this method.',
        headers: { Allow: denial.allow.join(', ') },
      }
    default:
      return denial satisfies never
  }
}

const BEARER = 'Bearer realm="portcullis"'
/** A DPoP challenge (RFC 9449 section 7.1). It has no `error` if the request has no credentials. */
const DPOP = 'DPoP realm="portcullis"'
const DPOP_ALGS = `algs="${DPOP_ALGORITHMS.join(' ')}"`

/** How a dependency failed, as `Unavailable` describes it. */
interface Failure {
  readonly dependency: Dependency
  readonly fault: Fault
  readonly retryAfterSeconds: number
  readonly shortCircuited: boolean
}

/** Returns the problem for a dependency that failed. */
export function problemOfFailure(failure: Failure): Problem {
  const { dependency, fault, retryAfterSeconds, shortCircuited } = failure
  const headers = { 'Retry-After': String(retryAfterSeconds) }
  if (dependency === 'gateway') {
    return {
      code: 'overloaded',
      status: 503,
      title: 'Overloaded',
      detail: 'Too many requests are waiting.',
      headers,
    }
  }
  if (dependency !== 'origin') {
    return {
      code: 'dependency_unavailable',
      status: 503,
      title: 'Service unavailable',
      detail: 'The request cannot be decided at the moment.',
      headers,
    }
  }
  return fault === 'timeout'
    ? {
        code: 'origin_timeout',
        status: 504,
        title: 'Origin timeout',
        detail: 'The origin did not answer in time.',
        ...(shortCircuited && { headers }),
      }
    : {
        code: 'origin_unreachable',
        status: 502,
        title: 'Origin unreachable',
        detail: 'The origin could not be reached.',
        ...(shortCircuited && { headers }),
      }
}

/** The problem for every request if the gateway's configuration is invalid. */
export const MISCONFIGURED: Problem = {
  code: 'misconfigured',
  status: 500,
  title: 'Misconfigured',
  detail: 'The gateway is not configured correctly and handles no requests.',
}

/** The problem for a defect of the gateway. */
export const INTERNAL_ERROR: Problem = {
  code: 'internal_error',
  status: 500,
  title: 'Internal error',
  detail: 'The request could not be handled.',
}
