/** Checks that no rolling window exceeded its limit. Pure. */
import { type Admission, admissionOf, type History, type LossEvent } from '../chaos/history.ts'
import type { LimitTerms, Terms } from './terms.ts'

/** Added to the life of a lease: its margin, and a call in progress. */
const SETTLING_MS = 500

export interface WindowFinding {
  readonly limit: string
  readonly subject: string
  readonly admitted: number
  /** Maximum number of admissions that were certainly inside one window. This value is judged. */
  readonly certain: number
  /** Maximum number that may have been inside one window, given the uncertainty of clocks. */
  readonly possible: number
  /** Maximum number around a loss of data; 0: not more than the limit. */
  readonly aroundLoss: number
}

export interface Windows {
  readonly findings: readonly WindowFinding[]
  readonly violations: readonly string[]
}

/**
 * Checks all windows. An admission happened between the start of the request and its arrival at the
 * origin. More than `limit` admissions were certainly in one window only if their earliest start
 * and latest end are less than a window apart. Only this is a violation.
 *
 * After Redis loses its data, windows start again, and isolates may still spend or return leased
 * units. So windows before the loss are judged, and windows that start later than a window plus the
 * life of a lease after it. Windows in between may have twice the limit plus the leased units.
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

/** Returns the admissions by subject, ordered by their start. */
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

/** Returns the admissions between losses, without those close to a loss. */
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

/** Returns the most that were within a window. `admissions` must be ordered by `fromMs`. */
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

/** Returns the maximum number that may have been in a window that starts when one of them ends. */
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
