/** A summary of decisions: counts by time, outcome, reason and more. Pure: no I/O, no clock. */

import * as z from 'zod/mini'
import { describe } from '../validators/checks.ts'
import { integer } from '../validators/schema-parts.ts'
import type { AuditEvent } from './event.ts'

const count = () => integer().check(z.minimum(0))
const decisions = { allow: count(), deny: count(), error: count() }
const counted = () => z.array(z.strictObject({ value: z.string(), count: count() }))

/** The names of the counts, and how many values each has. */
const FACETS = ['reason', 'route', 'client', 'tenant', 'subject', 'address', 'status'] as const
const MAX_VALUES = 20

export const summarySchema = z.strictObject({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  countedSince: z.iso
    .datetime()
    .check(
      describe(
        'the counts have all events since this time. Later than `since`: the period has too many events',
      ),
    ),
  ...decisions,
  bucketSeconds: count(),
  buckets: z
    .array(z.strictObject({ time: z.iso.datetime(), ...decisions }))
    .check(describe('in the order of time, without gaps, from `since` on')),
  durationMs: z
    .nullable(z.strictObject({ p50: z.number(), p99: z.number() }))
    .check(describe('sum of the stages of a request, the origin included; null: no request')),
  facets: z
    .strictObject({
      reason: counted(),
      route: counted(),
      client: counted(),
      tenant: counted(),
      subject: counted(),
      address: counted(),
      status: counted(),
    })
    .check(describe(`of each, the ${MAX_VALUES} most frequent values; reasons are of refusals`)),
  callersSince: z.iso
    .datetime()
    .check(
      describe(
        'client, tenant, subject and address count events since this time. Later than `countedSince`: only the newest',
      ),
    ),
})

export type Summary = z.infer<typeof summarySchema>

/** Days of a period, so that a summary reads at most 744 hours, a week at a time: a Worker may make 50 queries on the free plan. */
export const MAX_SUMMARY_DAYS = 31

const MINUTE_MS = 60_000
/** Minutes of a bucket. A period has about 60 buckets. */
const STEPS = [1, 5, 15, 60, 360, 1_440, 10_080]
const BUCKETS = 60

const bucketMsOf = (spanMs: number): number => {
  const wanted = spanMs / BUCKETS / MINUTE_MS
  return (STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / 10_080) * 10_080) * MINUTE_MS
}

type Kind = Pick<AuditEvent, 'decision' | 'reason' | 'route' | 'status'>

export type Counter = ReturnType<typeof createCounter>

/** Creates the counter of a period. */
export function createCounter(sinceMs: number, untilMs: number) {
  const bucketMs = bucketMsOf(untilMs - sinceMs)
  const firstMs = Math.floor(sinceMs / bucketMs) * bucketMs
  const buckets = Array.from({ length: Math.ceil((untilMs - firstMs) / bucketMs) }, (_, at) => ({
    time: new Date(firstMs + at * bucketMs).toISOString(),
    ...{ allow: 0, deny: 0, error: 0 },
  }))
  const all = { allow: 0, deny: 0, error: 0 }
  const facets = new Map(FACETS.map((name) => [name, new Map<string, number>()]))
  /** Milliseconds, and how many requests took so long. */
  const durations: (readonly [ms: number, count: number])[] = []
  const addTo = (
    name: (typeof FACETS)[number],
    value: string | null | undefined,
    count: number,
  ) => {
    const counts = facets.get(name)
    if (value !== null && value !== undefined) counts?.set(value, (counts.get(value) ?? 0) + count)
  }
  const valuesOf = (name: (typeof FACETS)[number]) =>
    [...(facets.get(name) ?? [])]
      .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
      .slice(0, MAX_VALUES)
      .map(([value, count]) => ({ value, count }))

  const counter = {
    add(event: AuditEvent): void {
      counter.addTime(Date.parse(event.time), event.decision, 1)
      counter.addKind(event, 1)
      counter.addCaller(event)
      const stages = Object.values(event.durationsMs)
      if (stages.length > 0)
        counter.addDuration(
          stages.reduce((sum, ms) => sum + ms, 0),
          1,
        )
    },
    /** Counts only the caller of an event. */
    addCaller({ actor, address }: AuditEvent): void {
      addTo('client', actor.client, 1)
      addTo('tenant', actor.tenant, 1)
      addTo('subject', actor.subject, 1)
      addTo('address', address, 1)
    },
    /** Adds `count` events at a time, in milliseconds since the epoch. */
    addTime(ms: number, decision: Kind['decision'], count: number): void {
      const bucket = buckets[Math.floor((ms - firstMs) / bucketMs)]
      if (bucket !== undefined) bucket[decision] += count
    },
    /** Adds `count` events of one kind, apart from their time. */
    addKind({ decision, reason, route, status }: Kind, count: number): void {
      all[decision] += count
      if (decision !== 'allow') addTo('reason', reason, count)
      addTo('route', route, count)
      addTo('status', String(status), count)
    },
    addDuration: (ms: number, count: number): void => void durations.push([ms, count]),
    /** `callersSinceMs`: default `countedSinceMs`. */
    result(countedSinceMs: number, callersSinceMs: number = countedSinceMs): Summary {
      durations.sort(([a], [b]) => a - b)
      const total = durations.reduce((sum, [, count]) => sum + count, 0)
      const at = (share: number) => {
        let left = Math.min(total - 1, Math.floor(share * total))
        for (const [ms, count] of durations) {
          if (left < count) return ms
          left -= count
        }
        return 0
      }
      return {
        since: new Date(sinceMs).toISOString(),
        until: new Date(untilMs).toISOString(),
        countedSince: new Date(countedSinceMs).toISOString(),
        callersSince: new Date(callersSinceMs).toISOString(),
        ...all,
        bucketSeconds: bucketMs / 1_000,
        buckets,
        durationMs: total === 0 ? null : { p50: at(0.5), p99: at(0.99) },
        facets: {
          reason: valuesOf('reason'),
          route: valuesOf('route'),
          client: valuesOf('client'),
          tenant: valuesOf('tenant'),
          subject: valuesOf('subject'),
          address: valuesOf('address'),
          status: valuesOf('status'),
        },
      }
    },
  }
  return counter
}
