/** A summary of decisions: counts by time, outcome, reason and more. Pure: no I/O, no clock. */

import * as z from 'zod/mini'
import { describe } from '../validators/checks.ts'
import { integer } from '../validators/schema-parts.ts'
import type { AuditEvent } from './event.ts'
import type { AuditQuery, TenantOfIssuers } from './log.ts'

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
})

export type Summary = z.infer<typeof summarySchema>

/** Port: counts events. Rejects with `Unavailable` if the store does not respond. */
export interface AuditSummary {
  /** With `within`, only events of callers with this tenant. */
  summarize(
    query: AuditQuery,
    period: { readonly sinceMs: number; readonly untilMs: number },
    within?: TenantOfIssuers,
  ): Promise<Summary>
}

const MINUTE_MS = 60_000
/** Minutes of a bucket. A period has about 60 buckets. */
const STEPS = [1, 5, 15, 60, 360, 1_440, 10_080]
const BUCKETS = 60

const bucketMsOf = (spanMs: number): number => {
  const wanted = spanMs / BUCKETS / MINUTE_MS
  return (STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / 10_080) * 10_080) * MINUTE_MS
}

export interface Counter {
  add(event: AuditEvent): void
  result(countedSinceMs: number): Summary
}

/** Creates the counter of a period. */
export function createCounter(sinceMs: number, untilMs: number): Counter {
  const bucketMs = bucketMsOf(untilMs - sinceMs)
  const firstMs = Math.floor(sinceMs / bucketMs) * bucketMs
  const buckets = Array.from({ length: Math.ceil((untilMs - firstMs) / bucketMs) }, (_, at) => ({
    time: new Date(firstMs + at * bucketMs).toISOString(),
    ...{ allow: 0, deny: 0, error: 0 },
  }))
  const all = { allow: 0, deny: 0, error: 0 }
  const facets = new Map(FACETS.map((name) => [name, new Map<string, number>()]))
  const durations: number[] = []
  const addTo = (name: (typeof FACETS)[number], value: string | null | undefined) => {
    const counts = facets.get(name)
    if (value !== null && value !== undefined) counts?.set(value, (counts.get(value) ?? 0) + 1)
  }
  const valuesOf = (name: (typeof FACETS)[number]) =>
    [...(facets.get(name) ?? [])]
      .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
      .slice(0, MAX_VALUES)
      .map(([value, count]) => ({ value, count }))
  return {
    add({ time, decision, reason, route, actor, address, status, durationsMs }) {
      const bucket = buckets[Math.floor((Date.parse(time) - firstMs) / bucketMs)]
      if (bucket !== undefined) bucket[decision] += 1
      all[decision] += 1
      if (decision !== 'allow') addTo('reason', reason)
      addTo('route', route)
      addTo('client', actor.client)
      addTo('tenant', actor.tenant)
      addTo('subject', actor.subject)
      addTo('address', address)
      addTo('status', String(status))
      const stages = Object.values(durationsMs)
      if (stages.length > 0) durations.push(stages.reduce((sum, ms) => sum + ms, 0))
    },
    result(countedSinceMs) {
      durations.sort((a, b) => a - b)
      const at = (share: number) =>
        durations[Math.min(durations.length - 1, Math.floor(share * durations.length))] ?? 0
      return {
        since: new Date(sinceMs).toISOString(),
        until: new Date(untilMs).toISOString(),
        countedSince: new Date(countedSinceMs).toISOString(),
        ...all,
        bucketSeconds: bucketMs / 1_000,
        buckets,
        durationMs: durations.length === 0 ? null : { p50: at(0.5), p99: at(0.99) },
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
}
