/**
 * Sends one HTTP request: with a timeout, no redirects, a JSON response, and errors as failures.
 */

import { remedyFor, unreachable } from '../dev/start/unreachable.ts'
import { type ExitCode, Failure, type Finding, REFUSED, UNDECIDED, undecided } from './failure.ts'
import { objectIn } from './json.ts'
import { plainFinding } from './plain-findings.ts'

/** Timeout of the whole response. Longer than the gateway ever takes. */
const TIMEOUT_MS = 10_000
/** The same for a call that waits for the bound of revocations, which is at most 60 s. */
export const WAITING_TIMEOUT_MS = 75_000
/** Replaces the gateway's own detail, which refers to the schema of a route. */
const INPUT_REFUSED = 'The gateway refused the request.'
/**
 * RFC 9110 sections 15.6.3 to 15.6.5: an outage of the gateway, its dependencies or the network.
 */
const OUTAGES = [502, 503, 504]

export interface HttpRequest {
  readonly method: string
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Receives the id that the gateway gave the request. */
  readonly onRequestId?: (id: string) => void
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined
  /** Default: {@link TIMEOUT_MS}. */
  readonly timeoutMs?: number
}

/**
 * Sends a request and returns the JSON of a 2xx response, or an empty object if it has no body.
 * Throws a {@link Failure} for everything else: with the gateway's own message for a refusal, or
 * with the reason of a connection error.
 */
export async function exchange(request: HttpRequest): Promise<object> {
  const { timeoutMs = TIMEOUT_MS } = request
  const deadline = AbortSignal.timeout(timeoutMs)
  const signal = request.signal ? AbortSignal.any([deadline, request.signal]) : deadline
  let response: Response
  let text: string
  try {
    response = await fetch(request.url, {
      method: request.method,
      headers: { Accept: 'application/json, application/problem+json', ...request.headers },
      ...(request.body !== undefined && { body: request.body }),
      // A redirect would send the credentials to another server.
      redirect: 'manual',
      signal,
    })
    const id = response.headers.get('X-Request-Id')
    if (id !== null) request.onRequestId?.(id)
    text = await response.text()
  } catch (error) {
    throw connectionFailure(request.url, error, timeoutMs)
  }
  const answer = text === '' && response.ok ? {} : objectIn(text)
  if (!response.ok) throw refusal(response, answer)
  if (answer === undefined) throw unexpected(response)
  return answer
}

function connectionFailure(url: URL, error: unknown, timeoutMs: number): Failure {
  if ((error as Error).name === 'TimeoutError') {
    const seconds = timeoutMs / 1_000
    return undecided('gateway_timeout', `${url.origin} did not respond within ${seconds} s`)
  }
  const problem = unreachable(error as Error)
  const detail = [`${url.origin} ${problem}`, remedyFor(problem, '')].filter(Boolean).join('. ')
  return undecided('gateway_unreachable', detail)
}

/** Parses a problem document (RFC 9457) or an OAuth error (RFC 6749 section 5.2). */
function refusal(response: Response, answer: object | undefined): Failure {
  const { code, error, detail, title, error_description, requestId, errors } = (answer ??
    {}) as Record<string, unknown>
  const name = [code, error].find((value) => typeof value === 'string')
  if (name === undefined) return unexpected(response)
  const own = name === 'invalid_input' ? INPUT_REFUSED : undefined
  const words = [own, detail, error_description, title].find((value) => typeof value === 'string')
  const id = [requestId, response.headers.get('X-Request-Id')].find(
    (value) => typeof value === 'string',
  )
  return new Failure(exitCodeOf(response), name, words ?? `status ${response.status}`, {
    requestId: id ?? null,
    findings: (Array.isArray(errors) ? errors : [])
      .filter(isFinding)
      .map((finding) => plainFinding(finding, listingOf(response))),
    retryAfterSeconds: retryAfterOf(response),
  })
}

/** Returns the command that lists the records of a request: collections of the API have names of commands. */
function listingOf({ url }: Response): string {
  const [, collection = 'api-keys'] = /\/-\/admin\/([a-z-]+)/.exec(url) ?? []
  return `portcullis ${collection} list`
}

function unexpected(response: Response): Failure {
  const { status, url } = response
  const detail = `${new URL(url).origin} answered with status ${status}, but not in the form of a gateway`
  return new Failure(exitCodeOf(response), 'unexpected_answer', detail)
}

const exitCodeOf = ({ status }: Response): ExitCode =>
  OUTAGES.includes(status) ? UNDECIDED : REFUSED

/** Parses `Retry-After` (RFC 9110 section 10.2.3) in seconds. The gateway does not send dates. */
function retryAfterOf({ headers }: Response): number | null {
  const text = headers.get('Retry-After') ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : null
}

function isFinding(value: unknown): value is Finding {
  const { in: place, path, message } = (value ?? {}) as Record<string, unknown>
  return [place, path, message].every((part) => typeof part === 'string')
}
