/** What counts, and where it is added up: made of an environment. */
import { type LocalTally, newLocalTally } from '../admission/local.ts'
import type { AuditSink } from '../audit/event.ts'
import type { Breakers } from '../breakers/registry.ts'
import { verdictTally } from '../inspection/signatures/judge.ts'
import { createCounters } from '../metrics/counters.ts'
import { exposition } from '../metrics/exposition.ts'
import { meteredSink } from '../metrics/metered-sink.ts'
import { createReporter } from '../metrics/reporter.ts'
import { createRequestCounter } from '../metrics/request-metrics.ts'
import { samplesOf } from '../metrics/samples.ts'
import {
  type AuditTally,
  createSources,
  newAuditTally,
  newTally,
  type Tally,
} from '../metrics/tally.ts'
import { newestEventMs } from '../stores/d1/newest-event.ts'
import { createMetricsStore } from '../stores/upstash/metrics.ts'
import { createRedisRest, type RedisRestOptions } from '../stores/upstash/rest.ts'
import type { SpanTally } from '../tracing/exporter.ts'

/** Nobody waits for a report, and a scrape may take a while. */
const METRICS_TIMEOUT_MS = 2_000

export interface MetricsParts {
  readonly redis: Pick<RedisRestOptions, 'url' | 'token'>
  readonly breakers: Breakers
  /** Undefined: nobody knows when the newest event was decided. */
  readonly auditDb: D1Database | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The memories of an isolate; whoever owns one counts. */
export interface MemoryTallies {
  readonly tokens: Tally
  readonly references: Tally
  readonly revoked: Tally
  readonly exhausted: Tally
  readonly relations: Tally
}

export interface MetricsServices {
  readonly memories: MemoryTallies
  /** Admission without a call, and what was taken ahead for it. */
  readonly local: LocalTally
  readonly audit: AuditTally
  readonly spans: SpanTally
  /** Counts what passes on its way to `sink`. */
  metered(sink: AuditSink): AuditSink
  /** Counts a call to Redis by how it ended. */
  redisCall(outcome: string): void
  /** Everything, of all isolates, in the Prometheus text format. Throws `Unavailable`. */
  text(): Promise<string>
}

/**
 * Makes the metrics of an isolate. Reports have a client of their own, without a breaker: what they
 * meet says nothing of what a request would, and they try again by themselves.
 */
export function metricsServices({ redis, breakers, auditDb, now }: MetricsParts): MetricsServices {
  const counters = createCounters()
  const sources = createSources(counters)
  const store = createMetricsStore(createRedisRest({ ...redis, timeoutMs: METRICS_TIMEOUT_MS }))
  const count = createRequestCounter(counters)
  const reporter = createReporter({
    ...{ counters, store, now },
    collect: sources.collect,
    open: () => breakers.list.filter((each) => each.state() !== 'closed').map(({ name }) => name),
  })
  breakers.onTransition(({ breaker: { name }, to }) => {
    counters.add(counters.counter('portcullis_breaker_transitions_total', [name, to]), 1)
  })
  const memories: MemoryTallies = {
    tokens: newTally(),
    references: newTally(),
    revoked: newTally(),
    exhausted: newTally(),
    relations: newTally(),
  }
  for (const [name, tally] of Object.entries({ ...memories, verdicts: verdictTally }))
    sources.addCache(name, tally)
  const local = newLocalTally()
  sources.add('portcullis_local_admissions_total', [], () => local.admitted)
  for (const outcome of ['granted', 'returned'] as const)
    sources.add('portcullis_leased_units_total', [outcome], () => local[outcome])
  for (const outcome of ['refreshed', 'failed'] as const)
    sources.add('portcullis_admission_refreshes_total', [outcome], () => local[outcome])
  const audit = newAuditTally()
  for (const outcome of ['sent', 'spilled', 'lost'] as const)
    sources.add('portcullis_audit_events_total', [outcome], () => audit[outcome])
  const spans: SpanTally = { exported: 0, dropped: 0 }
  for (const outcome of ['exported', 'dropped'] as const)
    sources.add('portcullis_spans_total', [outcome], () => spans[outcome])
  const redisCalls = new Map<string, number>()

  return {
    memories,
    local,
    audit,
    spans,
    metered: (sink) => meteredSink(sink, count, reporter),
    redisCall(outcome) {
      let place = redisCalls.get(outcome)
      if (place === undefined) {
        place = counters.counter('portcullis_redis_calls_total', [outcome])
        redisCalls.set(outcome, place)
      }
      counters.add(place, 1)
    },
    async text() {
      const [totals, newestMs] = await Promise.all([
        store.read(now()),
        auditDb === undefined ? undefined : newestEventMs(auditDb),
      ])
      return exposition(samplesOf(totals, newestMs))
    },
  }
}
