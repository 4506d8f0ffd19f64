import type { AuditEvent } from '../../audit/event.ts'
import type { MetricName } from './catalogue.ts'
import type { Counters } from './counters.ts'

/** Methods with their own label. Others share one, because a caller can send any method. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const OTHER_METHOD = 'other'
const NO_ROUTE = 'none'

/**
 * Creates the function that counts the decisions of an isolate. The names of series are built only
 * once: a request costs a few lookups, and an addition for each stage.
 */
export function createRequestCounter(counters: Counters): (event: AuditEvent) => void {
  const placesOf = memoized((route: string | null) =>
    memoized((method: string) => {
      const labels = [method, route ?? NO_ROUTE]
      const placeOfStatus = (...decided: readonly [AuditEvent['decision'], code: string]) =>
        memoized((status: number) =>
          counters.counter('portcullis_requests_total', [...labels, ...decided, String(status)]),
        )
      return {
        duration: counters.histogram('portcullis_request_duration_seconds', labels),
        allow: placeOfStatus('allow', 'ok'),
        deny: memoized((code: string) => placeOfStatus('deny', code)),
        error: memoized((code: string) => placeOfStatus('error', code)),
      }
    }),
  )
  const stagePlace = memoized((stage: string) =>
    counters.histogram('portcullis_stage_duration_seconds', [stage]),
  )
  const placeOf = memoized((metric: MetricName) =>
    memoized((label: string) => counters.counter(metric, [label])),
  )

  const originPlace = memoized((origin: string) =>
    memoized((status: number) =>
      counters.histogram('portcullis_origin_duration_seconds', [origin, String(status)]),
    ),
  )

  return function countRequest(event) {
    const { method, decision, reason, host, origin } = event
    const places = placesOf(host === undefined ? event.route : host + event.route)(
      METHODS.has(method) ? method : OTHER_METHOD,
    )
    const code = codeOf(decision, reason)
    const placeOfStatus = decision === 'allow' ? places.allow : places[decision](code)
    counters.add(placeOfStatus(event.status), 1)
    if (code === 'rate_limited')
      counters.add(placeOf('portcullis_rate_limited_total')(reason.slice(code.length + 1)), 1)
    let totalMs = 0
    for (const stage in event.durationsMs) {
      const stageMs = Math.round(event.durationsMs[stage] ?? 0)
      totalMs += stageMs
      counters.observe(stagePlace(stage), stageMs)
    }
    counters.observe(places.duration, totalMs)
    const { proxy } = event.durationsMs
    if (origin !== undefined && proxy !== undefined)
      counters.observe(originPlace(origin)(event.status), Math.round(proxy))
    for (const { name, unavailable } of event.limits)
      if (unavailable === true) counters.add(placeOf('portcullis_limits_uncounted_total')(name), 1)
    for (const observed of event.observed ?? [])
      counters.add(placeOf('portcullis_observed_refusals_total')(codeOf('deny', observed)), 1)
  }
}

/** Returns a function that creates the value of each key once. */
function memoized<Key, Value>(create: (key: Key) => Value): (key: Key) => Value {
  const values = new Map<Key, Value>()
  return (key) => {
    let value = values.get(key)
    if (value === undefined) {
      value = create(key)
      values.set(key, value)
    }
    return value
  }
}

/**
 * Returns the label for a reason. A denial is reduced to its code, because it has many details. An
 * error keeps its detail, because dependencies and faults are few and the difference matters.
 */
function codeOf(decision: AuditEvent['decision'], reason: string): string {
  const colon = decision === 'deny' ? reason.indexOf(':') : -1
  return colon === -1 ? reason : reason.slice(0, colon)
}
