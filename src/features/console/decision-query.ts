/** The query of a page of decisions. */
import * as z from 'zod/mini'
import { auditEventSchema } from '../../audit/event-schema.ts'
import type { Query } from './page.ts'
import { timesOf } from './period.ts'

export const REQUEST_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const auditPage = z.strictObject({
  events: z.array(auditEventSchema),
  cursor: z.optional(z.string()),
})

export const MAIN_FILTERS = [
  'decision',
  'reason',
  'route',
  'client',
  'tenant',
  'address',
  'status',
] as const
export const MORE_FILTERS = ['key', 'tool', 'change', 'observed', 'host', 'origin'] as const
const FILTERS = [...MAIN_FILTERS, ...MORE_FILTERS]

/** Returns the query of the operators' calls. */
export function filtersOf(query: Query, nowMs: number): Readonly<Record<string, string>> {
  const { q } = query
  const filters: Record<string, string> = { ...timesOf(query, nowMs) }
  for (const name of FILTERS) {
    const value = query[name]
    if (value !== undefined) filters[name] = value
  }
  if (q !== undefined) filters[REQUEST_ID.test(q) ? 'requestId' : 'subject'] = q
  return filters
}
