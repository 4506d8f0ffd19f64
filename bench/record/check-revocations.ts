/** Whether anybody got in later than the bound after a revocation. Pure. */
import { type FaultsByTime, HEALTHY } from './faults-by-time.ts'
import { admissionOf, type History, type RequestEvent, type RevokeEvent } from './history.ts'
import type { Terms } from './terms.ts'

export interface RevocationCounts {
  /** Tokens whose revocation returned while this was so for one process or more. */
  revoked: number
  /** Requests that were sent the bound or more after it had returned, and those of them that got in. */
  judged: number
  late: number
  /** Requests that were sent after it had returned, within the bound, and got in. */
  within: number
  /** The last of all that got in: how long after the revocation it was sent. Undefined: none did. */
  latestMs: number | undefined
}

export interface Revocations {
  /** Calls to the operators' API; those that were not answered 201 may have worked or not. */
  readonly calls: number
  readonly unanswered: number
  readonly revoked: number
  /** Requests with a revoked token that Redis may have forgotten: nothing is said of them. */
  readonly forgotten: number
  readonly total: RevocationCounts
  /** By what was wrong with the process that was asked; of `revoked`: with any process. */
  readonly byFault: Readonly<Record<string, RevocationCounts>>
  readonly byProcess: readonly RevocationCounts[]
  /** One sentence each. */
  readonly violations: readonly string[]
}

/**
 * A revocation is in force from when its 201 has come, if not before. One whose call began before Redis
 * had lost its data may be gone, so nothing is said of what may have been decided from then on.
 */
export function checkRevocations(
  history: History,
  faults: FaultsByTime,
  terms: Terms,
): Revocations {
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

  /** The loss that a revocation may have fallen to, where a request may have been decided after it. */
  const mayBeForgotten = ({ invokeMs }: RevokeEvent, request: RequestEvent) =>
    losses.some(({ fromMs, untilMs }) => invokeMs < untilMs && request.completeMs >= fromMs)

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
        `request ${request.id} at process ${request.process} got in ${afterMs.toFixed(1)} ms after ` +
          `its token was revoked at process ${revocation.process} (${fault})`,
      )
  }
  const unanswered = revocations.filter(({ status }) => status !== 201).length
  return {
    ...{ calls: revocations.length, unanswered, revoked: done.size, forgotten, total },
    ...{ byFault, byProcess, violations },
  }
}

const newCounts = (): RevocationCounts => ({
  revoked: 0,
  judged: 0,
  late: 0,
  within: 0,
  latestMs: undefined,
})
