/** Whether every answer has a reason, and how many came while what was wrong. Pure. */
import { type FaultsByTime, HEALTHY, RECOVERING } from './faults-by-time.ts'
import type { History, RequestEvent } from './history.ts'
import type { Terms } from './terms.ts'

/** Answers while the process that was asked was so. */
export interface Availability {
  requests: number
  admitted: number
  /** 429. */
  limited: number
  /** 401. */
  revoked: number
  /** 503. */
  unavailable: number
  /** None came. */
  none: number
}

export interface Answers {
  readonly byFault: Readonly<Record<string, Availability>>
  /** No history of a system that does what it should has one of these. One sentence each. */
  readonly wrong: readonly string[]
  /** 503, or no answer, where no fault is to blame: the machine may be. One sentence each. */
  readonly unexplained: readonly string[]
}

/** Faults that end connections, or keep a process from answering. */
const SILENCING: readonly string[] = ['gateway-killed', 'gateway-paused']
const NO_REDIS = 'dependency_unavailable'
const OVERLOADED = 'overloaded'

/**
 * Reasons: 200 if the origin has seen it; 401 if somebody had begun to revoke the token; 429 on a
 * route with limits; 503 and no answer if a fault of that process was on or shortly over.
 */
export function checkAnswers(history: History, faults: FaultsByTime, terms: Terms): Answers {
  const byFault: Record<string, Availability> = {}
  const [wrong, unexplained]: [string[], string[]] = [[], []]
  const revokingSince = new Map<string, number>()
  for (const { token, invokeMs } of history.revocations)
    revokingSince.set(token, Math.min(invokeMs, revokingSince.get(token) ?? invokeMs))

  function wrongIn(request: RequestEvent): string | undefined {
    const { id, status, code, route, token, completeMs } = request
    const hasArrived = history.arrivals.has(id)
    if (status === 200) return hasArrived ? undefined : 'the origin has not seen it'
    if (hasArrived && status !== 0) return 'the origin has seen it'
    if (status === 401)
      return (revokingSince.get(token) ?? completeMs) < completeMs ? undefined : 'not revoked'
    if (status === 429) return terms.routes[route]?.length ? undefined : 'no limit'
    if (status === 503 && (code === NO_REDIS || code === OVERLOADED)) return undefined
    return status === 0 ? undefined : 'no such answer'
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
    if (!known.has(id)) wrong.push(`the origin has seen ${id}, which nobody sent`)
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

const newAvailability = (): Availability => ({
  requests: 0,
  admitted: 0,
  limited: 0,
  revoked: 0,
  unavailable: 0,
  none: 0,
})
