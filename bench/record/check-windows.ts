/** Whether any rolling window held more than its limit. Pure. */
import { type Admission, admissionOf, type History, type LossEvent } from './history.ts'
import type { LimitTerms, Terms } from './terms.ts'

/** Beside the life of a lease: its margin, and a call that was under way. */
const SETTLING_MS = 500

/** What a limit made of one subject. */
export interface WindowFinding {
  readonly limit: string
  readonly subject: string
  readonly admitted: number
  /** Admissions that were certainly inside one window: the most. What is judged. */
  readonly certain: number
  /** Admissions that may have been: the most. How much the clocks leave open. */
  readonly possible: number
  /** The most that were certainly inside a window in which Redis lost everything; 0: no more than the limit. */
  readonly aroundLoss: number
}

export interface Windows {
  readonly findings: readonly WindowFinding[]
  /** One sentence each. */
  readonly violations: readonly string[]
}

/**
 * An admission happened at some time between the invocation and the arrival at the origin. Only if the
 * earliest beginning and the latest end of more than the limit lie less than a window apart, were they
 * certainly in one window, and only that is a violation.
 *
 * Where Redis lost its data, windows begin anew, and units that isolates hold are spent or given
 * back besides. So a window before the loss is judged, and one that begins a window and the life of a
 * lease after it; one between them may have twice the limit and what the isolates held.
 */
export function checkWindows(history: History, terms: Terms): Windows {
  const findings: WindowFinding[] = []
  const violations: string[] = []
  for (const [limit, rule] of Object.entries(terms.limits)) {
    for (const [subject, admissions] of admissionsOf(history, terms, limit)) {
      const parts = partsOf(admissions, history.losses, rule)
      const certain = Math.max(...parts.map((part) => mostCertain(part, rule.windowMs)))
      const possible = Math.max(...parts.map((part) => mostPossible(part, rule.windowMs)))
      const overall = parts.length > 1 ? mostCertain(admissions, rule.windowMs) : 0
      const aroundLoss = overall > rule.limit ? overall : 0
      findings.push({ limit, subject, admitted: admissions.length, certain, possible, aroundLoss })
      if (certain > rule.limit)
        violations.push(`${limit} of ${subject}: ${certain} of ${rule.limit} in one window`)
      const ceiling = 2 * rule.limit + terms.processes * (rule.lease?.max ?? 0)
      if (aroundLoss > ceiling)
        violations.push(`${limit} of ${subject}: ${aroundLoss} of ${ceiling} around a loss`)
    }
  }
  return { findings, violations }
}

/** By subject, in the order of when they began. */
function admissionsOf(
  { requests, arrivals }: History,
  { routes }: Terms,
  limit: string,
): Map<string, Admission[]> {
  const bySubject = new Map<string, Admission[]>()
  for (const request of requests) {
    if (!routes[request.route]?.includes(limit)) continue
    const admission = admissionOf(request, arrivals)
    if (admission === undefined) continue
    const known = bySubject.get(request.subject)
    if (known === undefined) bySubject.set(request.subject, [admission])
    else known.push(admission)
  }
  return bySubject
}

/** Those before the first loss, between it and the next, and so on; without those that are near one. */
function partsOf(
  admissions: readonly Admission[],
  losses: readonly LossEvent[],
  { windowMs, lease }: LimitTerms,
): readonly (readonly Admission[])[] {
  const settledMs = windowMs + (lease?.ttlMs ?? 0) + SETTLING_MS
  const begins = [Number.NEGATIVE_INFINITY, ...losses.map(({ untilMs }) => untilMs + settledMs)]
  return begins.map((beginMs, index) => {
    const endMs = losses[index]?.fromMs ?? Number.POSITIVE_INFINITY
    return admissions.filter(({ fromMs, untilMs }) => fromMs >= beginMs && untilMs < endMs)
  })
}

/** The most of them that began and ended less than a window apart. In the order of `fromMs`. */
function mostCertain(admissions: readonly Admission[], windowMs: number): number {
  let most = 0
  for (const [index, { fromMs }] of admissions.entries()) {
    let inside = 0
    for (let at = index; at < admissions.length; at++) {
      const other = admissions[at] as Admission
      if (other.fromMs >= fromMs + windowMs) break
      if (other.untilMs < fromMs + windowMs) inside += 1
    }
    most = Math.max(most, inside)
  }
  return most
}

/** The most of them that can have been in a window that begins as one of them ends. */
function mostPossible(admissions: readonly Admission[], windowMs: number): number {
  const begins = admissions.map(({ fromMs }) => fromMs)
  const ends = admissions.map(({ untilMs }) => untilMs).sort((one, other) => one - other)
  let [most, begun] = [0, 0]
  for (const [ended, endMs] of ends.entries()) {
    while (begun < begins.length && (begins[begun] as number) < endMs + windowMs) begun += 1
    most = Math.max(most, begun - ended)
  }
  return most
}
