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

export type EventPage = z.infer<typeof auditPage>

/** Queries while none of them finds an event. Each such query makes few calls to the database. */
const MAX_EMPTY = 3

/** Returns the first page with events. A query reads a bounded part of the trail, so it may find none although there are some. */
export async function firstEvents<
  Page extends { readonly events: readonly unknown[]; readonly cursor?: string | undefined },
>(
  read: (cursor: string | undefined) => Promise<Page | undefined>,
  from?: string,
): Promise<Page | undefined> {
  let cursor = from
  for (let left = MAX_EMPTY; ; left -= 1) {
    const page = await read(cursor)
    if (page?.cursor === undefined || page.events.length > 0 || left === 1) return page
    cursor = page.cursor
  }
}

/** Returns the time of a cursor. The events of its page are not later. */
export const cursorTime = (cursor: string): string =>
  new Date(Number.parseInt(cursor, 10)).toISOString()

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
