/** The operators' call that reads the state of all gateways on one Redis. */
import * as z from 'zod/mini'
import type { FeatureParts } from '../../gateway/feature.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { time } from '../../routes/admin/input.ts'
import { refuseTenant } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'

export const statusView = z.strictObject({
  isolates: integer().check(describe('isolates that reported in the last 35 seconds')),
  open: z
    .record(z.string(), integer())
    .check(describe('of each dependency, the isolates whose circuit breaker is not closed')),
  requests: z
    .record(z.string(), integer())
    .check(describe('decided requests by outcome, since the first report')),
  redisCalls: z.record(z.string(), integer()).check(describe('by outcome, since the first report')),
  auditEvents: z
    .record(z.string(), integer())
    .check(describe('by outcome, since the first report')),
  auditWaiting: integer().check(describe('events in Redis that the queue has not accepted')),
  newestEventAt: z.nullable(time).check(describe('null: no audit database, or it is empty')),
})

const REQUESTS = 'portcullis_requests_total{'
/** A quotation mark in the value of another label has a backslash before it. */
const DECISION = /,decision="(\w+)"/
const SAMPLE = /^portcullis_(\w+?)(?:\{(?:outcome|dependency)="([^"]*)"\})? (\S+)$/gm

/** Returns the decided requests by outcome, from metrics in the text format of Prometheus. */
export function requestsIn(text: string): Readonly<Record<string, number>> {
  const counts = new Map([
    ['allow', 0],
    ['deny', 0],
    ['error', 0],
  ])
  for (const line of text.split('\n')) {
    const decision = line.startsWith(REQUESTS) ? DECISION.exec(line)?.[1] : undefined
    if (decision === undefined) continue
    const count = Number(line.slice(line.lastIndexOf(' ')))
    counts.set(decision, (counts.get(decision) ?? 0) + count)
  }
  return Object.fromEntries(counts)
}

export function statusCalls({ metrics }: FeatureParts): (frame: CallFrame) => readonly AdminCall[] {
  return (frame) => [
    adminGroup(
      'Console',
      frame,
    )({
      method: 'GET',
      path: '/status',
      permission: 'metrics:read',
      id: 'readStatus',
      summary: 'Read the state of the gateways',
      description:
        'From the metrics that all isolates of all gateways on this Redis report every ten seconds. Operators with a tenant are refused (403).',
      response: 'The state, from at most 35 seconds ago.',
      reply: () => statusView,
      async handle({ scope }) {
        refuseTenant(scope)
        const groups = new Map<string, Record<string, number>>()
        const text = await metrics.text()
        for (const [, name = '', label = '', value] of text.matchAll(SAMPLE))
          groups.set(name, { ...groups.get(name), [label]: Number(value) })
        const totals = (name: string) => groups.get(name) ?? {}
        const single = (name: string) => totals(name)[''] ?? 0
        const newest = single('audit_newest_event_timestamp_seconds')
        return {
          isolates: single('isolates'),
          requests: requestsIn(text),
          open: totals('breaker_open_isolates'),
          redisCalls: totals('redis_calls_total'),
          auditEvents: totals('audit_events_total'),
          auditWaiting: single('audit_spilled_events'),
          newestEventAt: newest === 0 ? null : new Date(newest * 1_000).toISOString(),
        }
      },
    }),
  ]
}
