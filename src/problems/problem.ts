/** Problems, and problem documents (RFC 9457). */
import type { FeatureProblem, FeatureStatus, InputError } from './reasons.ts'

/** By the `code` member, which is also the last part of `type`. */
const PROBLEMS = {
  missing_token: { status: 401, title: 'Authentication required' },
  invalid_token: { status: 401, title: 'Invalid token' },
  invalid_dpop_proof: { status: 401, title: 'Invalid DPoP proof' },
  use_dpop_nonce: { status: 401, title: 'DPoP nonce required' },
  ambiguous_credentials: { status: 400, title: 'Ambiguous credentials' },
  cross_origin_request: { status: 403, title: 'Cross-origin request' },
  sign_in_required: { status: 401, title: 'Sign-in required' },
  insufficient_user_authentication: { status: 401, title: 'Stronger login required' },
  sign_in_refused: { status: 400, title: 'Sign-in refused' },
  oauth_error: { status: 400, title: 'OAuth error' },
  insufficient_permission: { status: 403, title: 'Insufficient permission' },
  banned: { status: 403, title: 'Banned' },
  rate_limited: { status: 429, title: 'Too many requests' },
  ambiguous_path: { status: 400, title: 'Ambiguous path' },
  malformed_request: { status: 400, title: 'Malformed request' },
  invalid_input: { status: 422, title: 'Invalid input' },
  input_refused: { status: 403, title: 'Input refused' },
  payload_too_large: { status: 413, title: 'Payload too large' },
  uri_too_long: { status: 414, title: 'URI too long' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  conflict: { status: 409, title: 'Conflict' },
  overloaded: { status: 503, title: 'Overloaded' },
  dependency_unavailable: { status: 503, title: 'Service unavailable' },
  origin_unreachable: { status: 502, title: 'Origin unreachable' },
  origin_timeout: { status: 504, title: 'Origin timeout' },
  internal_error: { status: 500, title: 'Internal error' },
  misconfigured: { status: 500, title: 'Misconfigured' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>

export type ProblemCode = keyof typeof PROBLEMS

export const isProblemCode = (text: string): boolean => Object.hasOwn(PROBLEMS, text)

/** A problem without the details of the request. */
export interface Problem {
  /** A {@link ProblemCode}, or the code of a feature's own problem. */
  readonly code: string
  readonly status: (typeof PROBLEMS)[ProblemCode]['status'] | FeatureStatus
  readonly title: string
  readonly detail: string
  /** The value of `WWW-Authenticate`. A parameter can be appended. */
  readonly challenge?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly errors?: readonly InputError[]
  /** The exhausted limit, the plan of the caller, and when a quota renews (RFC 3339): members of the document. */
  readonly limited?: { readonly limit: string; readonly plan?: string; readonly renewsAt?: string }
}

type Details = Pick<Problem, 'challenge' | 'headers' | 'errors' | 'limited'>

export const problem = (code: ProblemCode, detail: string, details?: Details): Problem => ({
  code,
  ...PROBLEMS[code],
  detail,
  ...details,
})

export const problemOfFeature = (
  { code, status, title }: FeatureProblem,
  detail: string,
  headers: Problem['headers'] = {},
): Problem => ({ code, status, title, detail, headers })

interface ProblemResponseOptions {
  readonly requestId?: string | undefined
  /** A parameter that is appended to the challenge, such as `, resource_metadata="…"`. */
  readonly challengeParameter?: string
  readonly headers?: Readonly<Record<string, string>>
  /** `type` is this URL with the code as its fragment. Default: `urn:portcullis:problem:<code>`. */
  readonly baseUrl?: string | undefined
  /** Whether the response has no body, as for HEAD. Default false. */
  readonly isEmpty?: boolean
}

/** Creates the response for a problem: the problem document, with `no-store`. */
export function problemResponse(
  { code, status, title, detail, challenge, headers, errors, limited }: Problem,
  options: ProblemResponseOptions = {},
): Response {
  const { requestId, challengeParameter = '', baseUrl, isEmpty } = options
  const body = {
    type: baseUrl === undefined ? `urn:portcullis:problem:${code}` : `${baseUrl}#${code}`,
    title,
    status,
    detail,
    code,
    // JSON has no members that are undefined.
    requestId,
    errors,
    ...limited,
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
