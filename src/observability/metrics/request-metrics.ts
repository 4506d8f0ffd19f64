/** Counts each decision in the metrics. */
import type { AuditEvent } from '../../audit/event.ts'
import type { Counters } from './counters.ts'

/** Counts a decision. */
export type CountRequest = (event: AuditEvent) => void

/**
 * Methods with their own label. All others share one label, because a caller can send any method.
 */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const OTHER_METHOD = 'other'
/** Label of requests that match no route. */
const NO_ROUTE = 'none'

/** The counter places of one method of one route. */
interface RoutePlaces {
  readonly labels: readonly string[]
  /** By status; for allowed requests. */
  readonly allowed: Map<number, number>
  /** By code of the reason, then by status. */
  readonly others: Map<string, Map<number, number>>
  readonly duration: number
}

/**
 * Creates the request counter of an isolate. An ordinary request costs two lookups for its route,
 * one for its status, and one addition for each stage. The names of series are built only once.
 */
export function createRequestCounter(counters: Counters): CountRequest {
  const byRoute = new Map<string | null, Map<string, RoutePlaces>>()
  const stages = new Map<string, number>()
  const named = new Map<string, number>()

  function placesOf(route: string | null, method: string): RoutePlaces {
    let byMethod = byRoute.get(route)
    if (byMethod === undefined) {
      byMethod = new Map()
      byRoute.set(route, byMethod)
    }
    let places = byMethod.get(method)
    if (places === undefined) {
      const labels = [method, route ?? NO_ROUTE]
      const duration = counters.histogram('portcullis_request_duration_seconds', labels)
      places = { labels, allowed: new Map(), others: new Map(), duration }
      byMethod.set(method, places)
    }
    return places
  }

  /** Increments a counter that has one label. */
  function count(metric: NamedMetric, label: string): void {
    const name = metric + label
    let place = named.get(name)
    if (place === undefined) {
      place = counters.counter(metric, [label])
      named.set(name, place)
    }
    counters.add(place, 1)
  }

  function countDecision(places: RoutePlaces, { decision, reason, status }: AuditEvent): void {
    const code = decision === 'allow' ? reason : codeOf(decision, reason)
    let byStatus = places.allowed
    if (decision !== 'allow') {
      const known = places.others.get(code)
      byStatus = known ?? new Map()
      if (known === undefined) places.others.set(code, byStatus)
      if (code === 'rate_limited')
        count('portcullis_rate_limited_total', reason.slice(code.length + 1))
    }
    let place = byStatus.get(status)
    if (place === undefined) {
      const labels = [...places.labels, decision, code, String(status)]
      place = counters.counter('portcullis_requests_total', labels)
      byStatus.set(status, place)
    }
    counters.add(place, 1)
  }

  return function countRequest(event) {
    const places = placesOf(event.route, METHODS.has(event.method) ? event.method : OTHER_METHOD)
    countDecision(places, event)
    let totalMs = 0
    for (const stage in event.durationsMs) {
      const tookMs = Math.round(event.durationsMs[stage] ?? 0)
      totalMs += tookMs
      let place = stages.get(stage)
      if (place === undefined) {
        place = counters.histogram('portcullis_stage_duration_seconds', [stage])
        stages.set(stage, place)
      }
      counters.observe(place, tookMs)
    }
    counters.observe(places.duration, totalMs)
    for (const { name, unavailable } of event.limits)
      if (unavailable === true) count('portcullis_limits_uncounted_total', name)
    if (event.observed !== undefined)
      for (const reason of event.observed)
        count('portcullis_observed_refusals_total', codeOf('deny', reason))
  }
}

type NamedMetric =
  | 'portcullis_rate_limited_total'
  | 'portcullis_limits_uncounted_total'
  | 'portcullis_observed_refusals_total'

/**
 * Returns the label for a reason. A denial is reduced to its code, because it has many details. An
 * error keeps its detail, because dependencies and faults are few and the difference matters.
 */
function codeOf(decision: AuditEvent['decision'], reason: string): string {
  const colon = decision === 'error' ? -1 : reason.indexOf(':')
  return colon === -1 ? reason : reason.slice(0, colon)
}
