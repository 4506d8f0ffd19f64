/** The wire form of every refusal: RFC 9457 problem documents, said once, saying little. */
import type { Context, ErrorHandler } from 'hono'
import type { RateLimit } from './admission/limit.ts'
import { type Problem, problemOf } from './problem-of.ts'
import { setRateLimitHeaders } from './rate-limit-headers.ts'

export interface ProblemOptions {
  /** Base of the `resource_metadata` link in challenges (RFC 9728 section 5.1). */
  readonly publicUrl?: string
}

/**
 * Makes the one error handler of an app: the precise reason stays in the audit event, the caller
 * gets as much as the RFC allows.
 *
 * @example
 * ```ts
 * app.onError(problemHandler({ publicUrl: 'https://api.example' }))
 * ```
 */
export function problemHandler({ publicUrl }: ProblemOptions = {}): ErrorHandler {
  const metadata =
    publicUrl === undefined
      ? ''
      : `, resource_metadata="${publicUrl}/.well-known/oauth-protected-resource"`
  return function toProblem(error, c) {
    return problemResponse(c, problemOf(error, metadata))
  }
}

/** Ties a problem to a request: its id, its consulted limits, and `no-store`. */
function problemResponse(c: Context, problem: Problem): Response {
  const { code, status, title, detail, errors } = problem
  const requestId: string | undefined = c.get('requestId')
  const headers = new Map<string, string>([
    ['Content-Type', 'application/problem+json'],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
    ...Object.entries(problem.headers ?? {}),
  ])
  const limits: readonly RateLimit[] | undefined = c.get('rateLimits')
  if (limits !== undefined) setRateLimitHeaders(headers, limits, Date.now())
  const body = {
    type: `urn:portcullis:problem:${code}`,
    title,
    status,
    detail,
    code,
    ...(requestId !== undefined && { requestId }),
    ...(errors !== undefined && { errors }),
  }
  return new Response(c.req.method === 'HEAD' ? null : JSON.stringify(body), {
    status,
    headers: Object.fromEntries(headers),
  })
}
