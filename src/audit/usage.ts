/** The usage of API keys, as the audit trail has it. */

import * as z from 'zod/mini'
import { describe } from '../validators/checks.ts'
import { integer } from '../validators/schema-parts.ts'

const count = () => integer().check(z.minimum(0))

/** The requests of one day (UTC) with a key. */
export const usageDaySchema = z.strictObject({
  day: z.iso.date(),
  requests: count(),
  allowed: count(),
  refused: count(),
  errors: count().check(describe('the gateway or the origin could not answer')),
  reasons: z
    .record(z.string(), count())
    .check(describe('requests that were not allowed, by the reason in audit events')),
})

export type UsageDay = z.infer<typeof usageDaySchema>

export interface UsagePeriod {
  /** Milliseconds since the epoch, inclusive. */
  readonly sinceMs: number
  /** Exclusive. */
  readonly untilMs: number
}

/** The requests of one route with a key. */
export const usageRouteSchema = z.strictObject({
  method: z.string(),
  route: z.nullable(z.string()).check(describe('null: no route matched')),
  host: z.nullable(z.string()).check(describe('the host pattern of the route')),
  requests: count(),
  allowed: count(),
  refused: count(),
  errors: count(),
})

export type UsageRoute = z.infer<typeof usageRouteSchema>

/** Requests with the same key, route and decision. */
export interface RouteCount extends Pick<UsageRoute, 'method' | 'route' | 'host' | 'requests'> {
  readonly key: string
  readonly decision: string
}

/** Groups counts, which are ordered by key and route, by their keys and routes. */
export function groupByRoute(counts: readonly RouteCount[]): Map<string, UsageRoute[]> {
  const keys = new Map<string, UsageRoute[]>()
  for (const { key, method, route, host, decision, requests } of counts) {
    const routes = keys.get(key) ?? []
    keys.set(key, routes)
    let of = routes.at(-1)
    if (of?.method !== method || of.route !== route || of.host !== host) {
      of = { method, route, host, requests: 0, allowed: 0, refused: 0, errors: 0 }
      routes.push(of)
    }
    add(of, decision, requests)
  }
  return keys
}

type Counts = Pick<UsageRoute, 'requests' | 'allowed' | 'refused' | 'errors'>

function add(of: Counts, decision: string, requests: number): void {
  of.requests += requests
  if (decision === 'allow') of.allowed += requests
  else if (decision === 'deny') of.refused += requests
  else of.errors += requests
}

/** Requests of a day with the same decision and reason. */
export interface UsageCount {
  /** Days since the epoch. */
  readonly day: number
  readonly decision: string
  readonly reason: string
  readonly requests: number
}

const DAY_MS = 86_400_000

/** Groups counts, which are ordered by day, by their days. */
export function groupByDay(counts: readonly UsageCount[]): UsageDay[] {
  const days = new Map<number, UsageDay>()
  for (const { day, decision, reason, requests } of counts) {
    let of = days.get(day)
    if (of === undefined) {
      const date = new Date(day * DAY_MS).toISOString().slice(0, 10)
      of = { day: date, requests: 0, allowed: 0, refused: 0, errors: 0, reasons: {} }
      days.set(day, of)
    }
    add(of, decision, requests)
    if (decision !== 'allow') of.reasons[reason] = (of.reasons[reason] ?? 0) + requests
  }
  return [...days.values()]
}
