/** The error handler: turns every refusal into a problem document (RFC 9457). */
import type { Context, ErrorHandler } from 'hono'
import type { RateLimit } from '../admission/limit.ts'
import { Denied } from '../errors.ts'
import { type Problem, problemOf } from './problem-of.ts'
import { type LimitRefusal, setRateLimitHeaders } from './rate-limit-headers.ts'

export interface ProblemOptions {
  /** Base URL of the `resource_metadata` link in challenges (RFC 9728 section 5.1). */
  readonly publicUrl?: string
}

/**
 * Creates the error handler of an app. The precise reason is recorded in the audit event. The
 * caller receives as few details as the RFC allows.
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
    return problemResponse(c, problemOf(error, metadata), refusalOf(error))
  }
}

function refusalOf(error: Error): LimitRefusal | undefined {
  return error instanceof Denied && error.denial.code === 'rate_limited' ? error.denial : undefined
}

/** Creates the response for a problem, with the request id, the consulted limits and `no-store`. */
function problemResponse(
  c: Context,
  problem: Problem,
  refusal: LimitRefusal | undefined,
): Response {
  const { code, status, title, detail, errors } = problem
  const requestId: string | undefined = c.get('requestId')
  const headers = new Map<string, string>([
    ['Content-Type', 'application/problem+json'],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
    ...Object.entries(problem.headers ?? {}),
  ])
  const limits: readonly RateLimit[] | undefined = c.get('rateLimits')
  if (limits !== undefined) setRateLimitHeaders(headers, limits, Date.now(), refusal)
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
