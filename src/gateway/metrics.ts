/** Composes the metrics: counters, and the reports that sum them in Redis. */

import { newLocalTally } from '../access/admission/local-admission.ts'
import type { AuditSink } from '../audit/event.ts'
import { STREAM_ENDED } from '../audit/reason.ts'
import type { GivenDatabase } from '../audit/sql/d1/database.ts'
import { newestEventMs } from '../audit/sql/d1/newest-event.ts'
import type { Breakers } from '../isolate/breakers.ts'
import { newAuditTally, newTally, type SpanTally, type Tally } from '../isolate/tally.ts'
import type { FeatureMetrics } from '../observability/metrics/catalogue.ts'
import { createCounters } from '../observability/metrics/counters.ts'
import { exposition } from '../observability/metrics/exposition.ts'
import { createMetricsStore } from '../observability/metrics/redis/metrics.ts'
import { createReporter } from '../observability/metrics/reporter.ts'
import { createRequestCounter } from '../observability/metrics/request-metrics.ts'
import type { ConnectRedis, Runtime } from './runtime.ts'

/** No request waits for a report, and a scrape may take long. */
const METRICS_TIMEOUT_MS = 2_000

interface MetricsParts {
  readonly connect: ConnectRedis
  readonly breakers: Breakers
  readonly auditDb: GivenDatabase | undefined
  /** Cache of the verdicts on texts. Undefined: the policy has no attack signatures. */
  readonly verdicts: Tally | undefined
  /** Of the features of the policy, by name. */
  readonly ofFeatures: FeatureMetrics
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep: Runtime['sleep']
  readonly gauges: Runtime['gauges']
}

type Cache = 'tokens' | 'references' | 'revoked' | 'exhausted' | 'relations'

export type MetricsServices = ReturnType<typeof metricsServices>

/**
 * Creates the metrics of an isolate. Reports use their own client without a breaker: their failures
 * do not predict those of requests, and they are retried anyway.
 */
export function metricsServices({
  connect,
  breakers,
  auditDb,
  verdicts,
  ofFeatures,
  now,
  sleep,
  gauges,
}: MetricsParts) {
  const counters = createCounters(gauges?.counted)
  const store = createMetricsStore(connect({ timeoutMs: METRICS_TIMEOUT_MS }))
  const count = createRequestCounter(counters)
  const scheduleReport = createReporter({
    counters,
    store,
    now,
    sleep,
    open: () => [
      // Each master of a cluster has a breaker, and is reported by itself too.
      ...breakers.list.flatMap(({ name, target, state }) =>
        state() === 'closed' ? [] : name === 'redis' && target ? [name, `redis:${target}`] : [name],
      ),
      ...(gauges?.reported ?? []),
    ],
  })
  breakers.onTransition(({ breaker: { name }, to }) => {
    counters.add(counters.counter('portcullis_breaker_transitions_total', [name, to]), 1)
  })
  const memories: Record<Cache, Tally> = {
    tokens: newTally(),
    references: newTally(),
    revoked: newTally(),
    exhausted: newTally(),
    relations: newTally(),
  }
  for (const [name, tally] of Object.entries(memories)) counters.addCache(name, tally)
  for (const name of ['tokens', 'references'] as const)
    counters.addSource('portcullis_cache_evictions_total', [name], () => memories[name].evictions)
  if (verdicts !== undefined) counters.addCache('verdicts', verdicts)
  const local = newLocalTally()
  counters.addSource('portcullis_local_admissions_total', [], () => local.admitted)
  for (const outcome of ['granted', 'returned'] as const)
    counters.addSource('portcullis_leased_units_total', [outcome], () => local[outcome])
  for (const outcome of ['refreshed', 'failed'] as const)
    counters.addSource('portcullis_admission_refreshes_total', [outcome], () => local[outcome])
  const audit = newAuditTally()
  for (const outcome of ['sent', 'spilled', 'lost'] as const)
    counters.addSource('portcullis_audit_events_total', [outcome], () => audit[outcome])
  const spans: SpanTally = { exported: 0, dropped: 0 }
  for (const outcome of ['exported', 'dropped'] as const)
    counters.addSource('portcullis_spans_total', [outcome], () => spans[outcome])
  const redisCalls = new Map<string, number>()

  return {
    /** Hits and misses of the caches of an isolate. */
    memories,
    local,
    audit,
    spans,
    /** Wraps `sink` to count the audit events that pass. */
    metered: (sink: AuditSink): AuditSink => ({
      record(event, waitUntil) {
        // First, so that an error in the metrics costs a count and not an audit event.
        const recorded = sink.record(event, waitUntil)
        // An event with status 0 has no request. Another one was counted when its response began.
        if (event.status !== 0 && !event.reason.startsWith(STREAM_ENDED)) count(event)
        scheduleReport(waitUntil)
        return recorded
      },
    }),
    /** Returns the function that adds to a series of a feature's metric. */
    counter(metric: string, labels: readonly string[]): (amount: number) => void {
      const place = counters.featureCounter(metric, labels)
      return (amount) => counters.add(place, amount)
    },
    /** Counts a call to Redis by its outcome. */
    redisCall(outcome: string): void {
      let place = redisCalls.get(outcome)
      if (place === undefined) {
        place = counters.counter('portcullis_redis_calls_total', [outcome])
        redisCalls.set(outcome, place)
      }
      counters.add(place, 1)
    },
    /** Returns the metrics of all isolates in the Prometheus text format. Throws `Unavailable`. */
    async text(): Promise<string> {
      const [totals, newestMs] = await Promise.all([
        store.read(now()),
        auditDb === undefined ? undefined : newestEventMs(auditDb),
        gauges?.refresh?.(),
      ])
      return exposition(totals, newestMs, ofFeatures, gauges)
    },
  }
}
