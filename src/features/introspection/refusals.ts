/** What a response with a status from 400 to 499 says: about the token, or about something else. */
import { present } from '../../access/tokens/present.ts'
import { parseStrictJson } from '../../http/strict-json.ts'

/**
 * - `token`: the issuer does not accept this token.
 * - `undecided`: it does not say what it refuses. The token is not refused, because the issuer may be
 *   out of order, and the response is no outage, because a sender of tokens may have caused it.
 * - `outage`: the gateway may not ask, or not now.
 */
export type Refusal = 'token' | 'undecided' | 'outage'

export interface RefusalResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Statuses of a request whose token is malformed, too long, or not permitted. */
const ABOUT_TOKEN: readonly number[] = [400, 410, 413, 414, 422, 431]
/** RFC 6749 section 5.2: the client of the gateway. */
const ABOUT_CLIENT: readonly unknown[] = ['invalid_client', 'unauthorized_client']
/** RFC 6750 section 3.1, RFC 7009 section 2.2.1. */
const TOKEN_ERRORS: readonly unknown[] = ['invalid_token', 'unsupported_token_type']
/** Limits of providers, some of which answer 403 for them. */
const LIMIT = /rate.?limit|quota|throttled|throttling|too.?many/i
/** Longer than the name of any error. */
const MAX_ERROR_CHARS = 100

/** Returns what the refusal of an introspection (RFC 7662) says. The gateway authenticates there. */
export function refusalOfIntrospection({ status, headers, text }: RefusalResponse): Refusal {
  const error = errorIn(text)
  if (TOKEN_ERRORS.includes(error)) return 'token'
  if (status === 401 || ABOUT_CLIENT.includes(error) || isLimit({ status, headers, text }))
    return 'outage'
  return ABOUT_TOKEN.includes(status) ? 'token' : 'undecided'
}

/** Returns what the refusal of a UserInfo request says. The token is the only credential there. */
export function refusalOfUserinfo(response: RefusalResponse): Refusal {
  const { status } = response
  if (status === 401) return 'token'
  if (isLimit(response)) return 'outage'
  return status === 403 || ABOUT_TOKEN.includes(status) ? 'token' : 'undecided'
}

function isLimit({ status, headers, text }: RefusalResponse): boolean {
  if (status === 408 || status === 425 || status === 429) return true
  return headers.has('retry-after') || (status === 403 && namesIn(errorIn(text)).some(isLimitName))
}

const isLimitName = (name: unknown): boolean =>
  typeof name === 'string' && name.length <= MAX_ERROR_CHARS && LIMIT.test(name)

/** Returns the member `error`, or the names in it if it is an object. Descriptions are free text. */
function namesIn(error: unknown): readonly unknown[] {
  if (typeof error !== 'object' || error === null) return [error]
  return ['code', 'reason', 'status', 'type'].map((name) => present({ ...error }, name))
}

function errorIn(text: string): unknown {
  try {
    const value = parseStrictJson(text)
    return typeof value === 'object' ? present({ ...value }, 'error') : undefined
  } catch {
    return undefined
  }
}
