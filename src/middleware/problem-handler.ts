/** The error handler: turns every refusal into a problem document (RFC 9457). */
import type { Context, ErrorHandler } from 'hono'
import type { RateLimit } from '../access/admission/limit.ts'
import { carriesResponse, Denied, Misconfigured, ProblemError } from '../errors.ts'
import { dropResponse } from '../http/replaced-response.ts'
import { type Problem, problem, problemResponse } from '../problems/problem.ts'
import { problemOfDenial } from '../problems/problem-of.ts'
import { setRateLimitHeaders } from './rate-limit-headers.ts'

export interface ProblemOptions {
  /** Base URL of the `resource_metadata` link in challenges (RFC 9728 section 5.1). */
  readonly publicUrl?: string
  /** URL of a page with a section for each code, as the beginning of `type`. Default: `type` is a URN. */
  readonly problemBaseUrl?: string | undefined
  /** The clock of `admit`, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Creates the error handler of an app. To the response that an error carries, it adds the request
 * id, the limits and the `resource_metadata` link. An `HTTPException` of the app keeps its own response. The precise reason is only in the audit event.
 *
 * @example
 * ```ts
 * app.onError(problemHandler({ publicUrl: 'https://api.example' }))
 * ```
 */
export function problemHandler({
  publicUrl,
  problemBaseUrl: baseUrl,
  now = () => Date.now(),
}: ProblemOptions = {}): ErrorHandler {
  const challengeParameter =
    publicUrl === undefined
      ? ''
      : `, resource_metadata="${publicUrl}/.well-known/oauth-protected-resource"`
  return function toProblem(error, c) {
    // The error may come after the response of the origin.
    dropResponse(c)
    const requestId = c.get('portcullis.requestId')
    // A stage has set it on the response that was dropped, if it ran inside of another composition.
    const ofRequest = requestId === undefined ? {} : { 'X-Request-Id': requestId }
    if (carriesResponse(error)) return withHeaders(error.getResponse(), ofRequest)
    return problemResponse(problemOf(error, c.get('portcullis.usesDpop')), {
      requestId,
      baseUrl,
      challengeParameter,
      headers: { ...createLimitHeaders(error, c, now), ...ofRequest },
      isEmpty: c.req.method === 'HEAD',
    })
  }
}

function withHeaders(response: Response, more: Readonly<Record<string, string>>): Response {
  const copy = new Response(response.body, response)
  for (const [name, value] of Object.entries(more)) copy.headers.set(name, value)
  return copy
}

/**
 * Returns the problem for an error. Anything except a {@link ProblemError} and {@link Misconfigured}
 * is a defect of the gateway: it is logged, and the caller receives a 500 without details. `usesDpop`: as for `problemOfDenial`.
 */
export function problemOf(error: Error, usesDpop?: true): Problem {
  if (usesDpop && error instanceof Denied) return problemOfDenial(error.denial, usesDpop)
  if (error instanceof ProblemError) return error.problem
  if (error instanceof Misconfigured)
    return problem(
      'misconfigured',
      'The server is not configured correctly; its log names the mistakes.',
    )
  // Never the message, which may contain a header or a response.
  console.error([`internal error: ${error.name}`, ...readStack(error)].join('\n'))
  return problem('internal_error', 'The request could not be handled.')
}

const MAX_FRAMES = 5
/** A stack frame in V8's format. A line of an error message may match it too. */
const FRAME = /^ {4}at .+/

/** The innermost stack frames. V8 puts the error's original name and message before them. */
function readStack({ stack = '', message }: Error): readonly string[] {
  const begins = stack.indexOf(message)
  const lines = begins === -1 ? [] : stack.slice(begins + message.length).split('\n')
  return lines.filter((line) => FRAME.test(line)).slice(0, MAX_FRAMES)
}

function createLimitHeaders(
  error: Error,
  c: Context,
  now: () => number,
): Readonly<Record<string, string>> {
  const limits: readonly RateLimit[] | undefined = c.get('portcullis.rateLimits')
  if (limits === undefined) return {}
  const denial = error instanceof Denied ? error.denial : undefined
  const headers = new Map<string, string>()
  setRateLimitHeaders(headers, limits, now(), denial)
  return Object.fromEntries(headers)
}
