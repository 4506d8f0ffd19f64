/** Problems, and problem documents (RFC 9457). */
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { InputError } from './reasons.ts'

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
  readonly status: ContentfulStatusCode
  readonly title: string
  readonly detail: string
  /** The value of `WWW-Authenticate`. A parameter can be appended. */
  readonly challenge?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly errors?: readonly InputError[]
}

/** What the problem itself does not determine. */
export interface ProblemResponseOptions {
  readonly requestId?: string | undefined
  /** A parameter that is appended to the challenge, such as `, resource_metadata="…"`. */
  readonly challengeParameter?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the response has no body, as for HEAD. Default false. */
  readonly isEmpty?: boolean
}

/** Creates the response for a problem: the problem document, with `no-store`. */
export function problemResponse(
  { code, status, title, detail, challenge, headers, errors }: Problem,
  options: ProblemResponseOptions = {},
): Response {
  const { requestId, challengeParameter = '', isEmpty = false } = options
  const body = {
    type: `urn:portcullis:problem:${code}`,
    title,
    status,
    detail,
    code,
    ...(requestId !== undefined && { requestId }),
    ...(errors !== undefined && { errors }),
  }
  return new Response(isEmpty ? null : JSON.stringify(body), {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...(challenge !== undefined && { 'WWW-Authenticate': challenge + challengeParameter }),
      ...headers,
      ...options.headers,
    },
  })
}
