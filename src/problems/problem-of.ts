/** Maps every refusal and error to a problem, in one exhaustive switch. */

import { type Denial, Denied, Misconfigured, Unavailable } from '../errors.ts'
import type { Problem, ProblemCode } from './problem-code.ts'
import { credentialProblem } from './problem-of-credential.ts'

export type { Problem, ProblemCode }

/**
 * Returns the problem for an error, with as few details as the RFC allows. `metadata` is appended
 * to challenges. Anything except {@link Denied}, {@link Unavailable} and {@link Misconfigured} is a
 * defect of the gateway: it is logged, and the caller receives a 500 without details.
 */
export function problemOf(error: Error, metadata: string): Problem {
  if (error instanceof Denied) return denialProblem(error.denial, metadata)
  if (error instanceof Unavailable) return unavailableProblem(error)
  if (error instanceof Misconfigured) return MISCONFIGURED
  // Logs the name and place of the error, never its message, which may contain a header or a
  // response.
  console.error([`internal error: ${error.name}`, ...placeOf(error)].join('\n'))
  return {
    code: 'internal_error',
    status: 500,
    title: 'Internal error',
    detail: 'The request could not be handled.',
  }
}

const MAX_FRAMES = 5
/** A stack frame in V8's format. A line of an error message may match it too. */
const FRAME = /^ {4}at .+/

/**
 * Returns the stack frames of an error, innermost first. V8 puts the error's original name and
 * message before the frames, so the message is skipped.
 */
function placeOf({ stack = '', message }: Error): readonly string[] {
  const begins = stack.indexOf(message)
  const lines = begins === -1 ? [] : stack.slice(begins + message.length).split('\n')
  return lines.filter((line) => FRAME.test(line)).slice(0, MAX_FRAMES)
}

/** The response to every request if the gateway's configuration is invalid. */
const MISCONFIGURED: Problem = {
  code: 'misconfigured',
  status: 500,
  title: 'Misconfigured',
  detail: 'The gateway is not configured correctly and handles no requests.',
}

function denialProblem(denial: Denial, metadata: string): Problem {
  switch (denial.code) {
    case 'missing_token':
    case 'token_rejected':
    case 'token_revoked':
    case 'invalid_dpop_proof':
    case 'use_dpop_nonce':
    case 'oauth_refused':
    case 'permission_missing':
      return credentialProblem(denial, metadata)
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

function unavailableProblem(error: Unavailable): Problem {
  const { dependency, fault, retryAfterSeconds, shortCircuited } = error
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
