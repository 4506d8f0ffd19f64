/** Problem codes and problems, as in problem documents (RFC 9457). */
import type { InputError } from '../errors.ts'

/** Values of the `code` member and of the last part of `type`. */
export type ProblemCode =
  | 'missing_token'
  | 'invalid_token'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'
  | 'oauth_error'
  | 'insufficient_permission'
  | 'banned'
  | 'ambiguous_path'
  | 'malformed_request'
  | 'invalid_input'
  | 'input_refused'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'not_found'
  | 'method_not_allowed'
  | 'rate_limited'
  | 'overloaded'
  | 'dependency_unavailable'
  | 'origin_unreachable'
  | 'origin_timeout'
  | 'internal_error'
  | 'misconfigured'

/** A problem without the details of the request. */
export interface Problem {
  readonly code: ProblemCode
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>>
  readonly errors?: readonly InputError[]
}
