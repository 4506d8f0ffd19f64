/** Which responses of a gateway are right, for each case. */

import type { Outcome } from './client.ts'
import { END_OF_HEAD, type Received, responseOf } from './messages.ts'
import type { Case } from './plan.ts'

const OVERLOADED = 503
const FAILED = [502, 504, OVERLOADED]

/** Returns what is wrong with the outcome of a case, or undefined. */
export function wrongIn(of: Case, { received, hasEnded }: Outcome): string | undefined {
  if (!hasEnded) return 'has no end'
  // A client that misbehaves has no claim to a response.
  if (of.client !== undefined || (of.kind === 'socket' && of.isEager)) return undefined
  if (received.extraBytes > 0) return `has ${received.extraBytes} bytes after its response`
  const { status } = received
  const isProblem = status !== 101 && received.isComplete
  // An open circuit breaker refuses any case at once, and says when it tries again.
  const isRefused =
    isProblem && (status === OVERLOADED || (status === 502 && received.hasRetryAfter))
  const { origin } = of
  if (origin === undefined) {
    if (isRefused) return undefined
    return isWhole(of, received) ? undefined : `has ${shown(received)} instead of its response`
  }
  const isFailed = FAILED.includes(status) && isProblem
  if (origin.side === 'request') {
    const isEarly = origin.act === 'early' && status === 413 && isProblem
    return isFailed || isEarly ? undefined : `has ${shown(received)} instead of 502 or 504`
  }
  const response = responseOf(of)
  const sent = Math.min(Math.floor(origin.at * response.length), response.length - 1)
  const hasHead = sent >= response.indexOf(END_OF_HEAD) + END_OF_HEAD.length
  if (!hasHead) return isFailed ? undefined : `has ${shown(received)} instead of 502 or 504`
  if (isFailed) return isRefused || !hasHead ? undefined : `has ${status} after a head`
  return received.isComplete ? 'looks complete, and the response of the origin was not' : undefined
}

function isWhole(of: Case, { status, isComplete, bodyBytes }: Received): boolean {
  if (of.kind === 'socket') return status === 101
  return status === 200 && isComplete && bodyBytes === of.answerBytes
}

const shown = ({ status, isComplete, bodyBytes }: Received) =>
  `${status === 0 ? 'no response' : status} (${bodyBytes} bytes, ${isComplete ? 'complete' : 'incomplete'})`
