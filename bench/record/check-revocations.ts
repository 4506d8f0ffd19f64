/** Checks that no request was admitted later than the staleness bound after a revocation. Pure. */
import {
  admissionOf,
  type FaultsByTime,
  HEALTHY,
  type History,
  type RequestEvent,
  type RevokeEvent,
} from '../chaos/history.ts'
import type { Terms } from './terms.ts'

export type RevocationCounts = ReturnType<typeof newCounts>

export type Revocations = ReturnType<typeof checkRevocations>

/**
 * Checks the revocations. A revocation is in force at the latest from its 201 response. If its call
 * began before Redis lost its data, the revocation may be lost. Later decisions about it are then
 * not judged.
 */
export function checkRevocations(history: History, faults: FaultsByTime, terms: Terms) {
  const { requests, revocations, losses, arrivals } = history
  const done = new Map<string, RevokeEvent>()
  for (const revocation of revocations) {
    const known = done.get(revocation.token)
    if (revocation.status !== 201) continue
    if (known === undefined || revocation.completeMs < known.completeMs)
      done.set(revocation.token, revocation)
  }
  const total = newCounts()
  const byFault: Record<string, RevocationCounts> = {}
  const byProcess = Array.from({ length: terms.processes }, newCounts)
  const violations: string[] = []
  let forgotten = 0
  const of = (fault: string) => {
    byFault[fault] ??= newCounts()
    return byFault[fault]
  }
  for (const { completeMs, process } of done.values()) {
    for (const name of faults.anywhere(completeMs)) of(name).revoked += 1
    for (const counts of [total, byProcess[process]]) if (counts) counts.revoked += 1
  }

  /** Reports whether data may have been lost between a revocation and the decision. */
  const mayBeForgotten = ({ invokeMs }: RevokeEvent, request: RequestEvent) =>
    losses.some(
      ({ only, fromMs, untilMs }) =>
        only === undefined && invokeMs < untilMs && request.completeMs >= fromMs,
    )

  for (const request of requests) {
    const revocation = done.get(request.token)
    if (revocation === undefined || request.invokeMs < revocation.completeMs) continue
    if (mayBeForgotten(revocation, request)) {
      forgotten += 1
      continue
    }
    const afterMs = request.invokeMs - revocation.completeMs
    const isAdmitted = admissionOf(request, arrivals) !== undefined
    const isLate = afterMs >= terms.boundMs
    const fault = faults.at(request.process, request.invokeMs)?.name ?? HEALTHY
    for (const counts of [total, of(fault), byProcess[request.process]]) {
      if (counts === undefined) continue
      if (isLate) counts.judged += 1
      if (isAdmitted && isLate) counts.late += 1
      if (isAdmitted && !isLate) counts.within += 1
      if (isAdmitted) counts.latestMs = Math.max(afterMs, counts.latestMs ?? afterMs)
    }
    if (isAdmitted && isLate)
      violations.push(
        `request ${request.id} at process ${request.process} was admitted ${afterMs.toFixed(1)} ms after ` +
          `its token was revoked at process ${revocation.process} (${fault})`,
      )
  }
  return {
    calls: revocations.length,
    /** These may have revoked the token or not. */
    unanswered: revocations.filter(({ status }) => status !== 201).length,
    revoked: done.size,
    /** Requests with a revoked token that Redis may have lost. They are not judged. */
    forgotten,
    /** By state of the called process; for `revoked`: of any process. */
    byFault,
    ...{ total, byProcess, violations },
  }
}

const newCounts = () => ({
  /** Tokens with a revocation that completed while at least one process was in this state. */
  revoked: 0,
  /** Requests sent after the bound, and how many of them were admitted. */
  judged: 0,
  late: 0,
  /** Requests sent after the revocation completed, within the bound, that were admitted. */
  within: 0,
  /** Milliseconds from a revocation to the latest admitted request; undefined: none. */
  latestMs: undefined as number | undefined,
})
