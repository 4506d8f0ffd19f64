/** Checks the events of a run and returns a verdict. Pure. */
import { RECHECK_SECONDS } from '../../src/streams/stream-runtime.ts'
import { INTERVAL_PART } from '../../src/streams/watched-stream.ts'
import {
  type FaultsByTime,
  faultsByTime,
  HEALTHY,
  type History,
  type HistoryEvent,
  historyOf,
  RECOVERING,
  type RequestEvent,
} from '../chaos/history.ts'
import { checkFamilies } from './check-families.ts'
import { checkRevocations } from './check-revocations.ts'
import { checkWindows } from './check-windows.ts'
import type { Terms } from './terms.ts'

export type Verdict = ReturnType<typeof check>

/** Checks events, which may be in any order. */
export function check(events: Iterable<HistoryEvent>, terms: Terms) {
  const history = historyOf(events)
  const faults = faultsByTime(history.faults)
  return {
    requests: history.requests.length,
    admitted: history.requests.filter(({ status }) => status === 200).length,
    windows: checkWindows(history, terms),
    revocations: checkRevocations(history, faults, terms),
    families: checkFamilies(history, terms),
    answers: checkAnswers(history, faults, terms),
  }
}

/** Returns the violations as sentences; none if everything is correct. */
export const violationsOf = (verdict: Verdict): readonly string[] => [
  ...verdict.windows.violations,
  ...verdict.revocations.violations,
  ...verdict.families.violations,
  ...verdict.answers.wrong,
]

/** Responses while the called process was in one state. */
export type Availability = ReturnType<typeof newAvailability>

/** Faults that close connections, or keep a process from responding. */
const SILENCING: readonly string[] = ['gateway-killed', 'gateway-paused']
const NO_REDIS = 'dependency_unavailable'
const OVERLOADED = 'overloaded'
/**
 * The age of a response at its first check. An earlier 401 is a decision that was made before the request
 * was sent to the origin.
 */
const FIRST_CHECK_MS = RECHECK_SECONDS.withFeed * 1_000 * INTERVAL_PART

/**
 * Checks the reasons: 200 if the origin received the request; 401 if a revocation of the token had
 * begun, and if the origin received the request, after the first check of its open response; 429 on a route with limits; 503 or no response if a fault of that process was active or
 * had just ended.
 */
function checkAnswers(history: History, faults: FaultsByTime, terms: Terms) {
  const byFault: Record<string, Availability> = {}
  /** Responses that are always wrong, and 503 or no response without a fault: the machine may be the cause. */
  const [wrong, unexplained]: [string[], string[]] = [[], []]
  const revokingSince = new Map<string, number>()
  for (const { token, invokeMs } of history.revocations)
    revokingSince.set(token, Math.min(invokeMs, revokingSince.get(token) ?? invokeMs))

  function wrongIn(request: RequestEvent): string | undefined {
    const { id, status, code, route, token, invokeMs, completeMs } = request
    const hasArrived = history.arrivals.has(id)
    if (status === 200) return hasArrived ? undefined : 'it did not reach the origin'
    const isEnded = status === 401 && completeMs - invokeMs >= FIRST_CHECK_MS
    if (hasArrived && status !== 0 && !isEnded) return 'it reached the origin'
    if (status === 401)
      return (revokingSince.get(token) ?? completeMs) < completeMs ? undefined : 'not revoked'
    if (status === 429) return terms.routes[route]?.length ? undefined : 'no limit'
    if (status === 503 && (code === NO_REDIS || code === OVERLOADED)) return undefined
    return status === 0 ? undefined : 'unexpected response'
  }

  for (const request of history.requests) {
    const { id, process, status, code, invokeMs, completeMs } = request
    const now = faults.at(process, invokeMs)
    const touching = faults.touching(process, invokeMs, completeMs)
    const name = now?.name ?? (touching === undefined ? HEALTHY : RECOVERING)
    byFault[name] ??= newAvailability()
    count(byFault[name], status)
    const about = `request ${id} at process ${process}: ${status} ${code} (${name})`
    const mistake = wrongIn(request)
    if (mistake !== undefined) wrong.push(`${about}: ${mistake}`)
    const isToBlame = touching !== undefined && (status !== 0 || SILENCING.includes(touching.name))
    if ((status === 503 || status === 0) && !isToBlame) unexplained.push(about)
  }
  const known = new Set(history.requests.map(({ id }) => id))
  for (const id of history.arrivals.keys())
    if (!known.has(id)) wrong.push(`request ${id} reached the origin, but was not sent`)
  return { byFault, wrong, unexplained }
}

function count(counts: Availability, status: number): void {
  counts.requests += 1
  if (status === 200) counts.admitted += 1
  if (status === 429) counts.limited += 1
  if (status === 401) counts.revoked += 1
  if (status === 503) counts.unavailable += 1
  if (status === 0) counts.none += 1
}

const newAvailability = () => ({
  requests: 0,
  admitted: 0,
  /** Number of 429 responses. */
  limited: 0,
  /** Number of 401 responses. */
  revoked: 0,
  /** Number of 503 responses. */
  unavailable: 0,
  /** Number of requests without a response. */
  none: 0,
})
