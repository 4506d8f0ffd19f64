/** Queries the audit trail, page by page. */

import { requestStart } from '../blocks/search-columns.ts'
import type { AuditPage, AuditQuery, TenantOfIssuers } from '../log.ts'
import { STREAM_ENDED } from '../reason.ts'
import { type AuditRow, eventOfRow } from './audit-row.ts'
import { type BlockEventsFound, type BlockSearch, searchBlocks } from './block-search.ts'
import { rowsOf, type TrailDatabase } from './database.ts'
import { withinQuery } from './schema.ts'
import { contains, joined, listed, type Sql, sql, text } from './statement.ts'

/**
 * A request id contains the start time of the request (RFC 9562 section 5.7), and the event has the
 * time of the response. The query searches only between these times, so it needs no index on the
 * id. No response takes this long, and no clock steps back this far.
 */
const MAX_REQUEST_MS = 3_600_000
const MAX_CLOCK_STEP_MS = 60_000
/** Most responses take less time, so their events are found here, before a second is read. */
const USUAL_REQUEST_MS = 10_000
/** Events that follow the event of a request: one for the end of its stream. */
const MAX_FOLLOWING = 20

/** Filters by the value of a column. Only those of subject, decision, route and key have an index. */
const EQUAL = [
  ['subject', 'subject'],
  ['client', 'client'],
  ['tenant', 'tenant'],
  ['address', 'address'],
  ['status', 'status'],
  ['decision', 'decision'],
  ['route', 'route'],
  ['host', 'host'],
  ['origin', 'origin'],
  ['key', 'api_key'],
] as const satisfies readonly (readonly [keyof AuditQuery, keyof AuditRow])[]

/** Creates the query of the recorded events. Fails as {@link withinQuery} does. */
export function createAuditLog(db: TrailDatabase) {
  const find = (statement: Sql): Promise<readonly AuditRow[]> =>
    withinQuery(() => rowsOf<AuditRow>(db, statement), [])

  /** Returns the rows of one request, newest first. Reads little more than the time that it took. */
  async function rowsOfRequest(selection: Selection, limit: number): Promise<readonly AuditRow[]> {
    for (const window of WINDOWS) {
      const first = await find(pageSelection(within(selection, window), limit))
      if (first.length === 0) continue
      // An index finds the events that may follow, at any time later.
      const later = await find(laterOf(selection))
      const ids = new Set(first.map(({ id }) => id))
      return [...later.filter(({ id }) => !ids.has(id)), ...first]
    }
    return []
  }

  return {
    /** With `tenant`, only events of callers with this tenant. */
    async query(query: AuditQuery, tenant?: TenantOfIssuers): Promise<AuditPage> {
      const selection = selectionOf(query, tenant)
      const isOneRequest = query.requestId !== undefined && query.cursor === undefined
      const search = withinQuery<BlockEventsFound>(
        () => searchBlocks(db, blockSearchOf(query, tenant)),
        { events: [] },
      )
      // A database has rows and blocks while it changes from one to the other.
      if (!isOneRequest) {
        const [found, rows] = await Promise.all([
          search,
          find(pageSelection(selection, query.limit)),
        ])
        return pageOf(rows, found, query.limit)
      }
      const found = await search
      if (found.events.length > 0) return { events: found.events.slice(0, query.limit) }
      return pageOf(await rowsOfRequest(selection, query.limit), found, query.limit)
    },
  }
}

function blockSearchOf(query: AuditQuery, within: TenantOfIssuers | undefined): BlockSearch {
  const { since, until, cursor, requestId } = query
  const startedMs = requestStart(requestId ?? '')
  const [begin, end] =
    requestId === undefined
      ? [0, Number.MAX_SAFE_INTEGER]
      : [startedMs - MAX_CLOCK_STEP_MS, startedMs + MAX_REQUEST_MS]
  const [ms = '', id = ''] = cursor?.split('.') ?? []
  return {
    query,
    within,
    startedMs: requestId === undefined ? undefined : startedMs,
    period: {
      sinceMs: Math.max(begin, since === undefined ? begin : Date.parse(since)),
      untilMs: Math.min(end, until === undefined ? end : Date.parse(until)),
    },
    before: cursor === undefined ? undefined : { ms: Number(ms), id },
    // One event more than the page shows whether a next page exists.
    limit: query.limit + 1,
  }
}

interface Selection {
  readonly conditions: readonly Sql[]
  /** When the request began that the query names. */
  readonly startedMs: number
}

const NEWEST_FIRST = text('ORDER BY time_ms DESC, id DESC')

function pageSelection({ conditions }: Selection, limit: number): Sql {
  const filter = conditions.length === 0 ? text('') : sql` WHERE ${joined(conditions, ' AND ')}`
  // One row more than the page shows whether a next page exists.
  return sql`SELECT * FROM audit_events${filter} ${NEWEST_FIRST} LIMIT ${limit + 1}`
}

/** When the events of a request are recorded, after its begin: where they usually are first. */
const WINDOWS = [
  [0, USUAL_REQUEST_MS],
  [-MAX_CLOCK_STEP_MS, 0],
  [USUAL_REQUEST_MS, MAX_REQUEST_MS],
] as const

function within(selection: Selection, [fromMs, toMs]: (typeof WINDOWS)[number]): Selection {
  const { conditions, startedMs } = selection
  const period = sql`time_ms >= ${startedMs + fromMs} AND time_ms < ${startedMs + toMs}`
  return { startedMs, conditions: [...conditions, period] }
}

/** The reasons of events that follow another event with the same request id. */
const FOLLOWING = [STREAM_ENDED, 'audit_erased:']

// The sign leaves the index of reasons as the only one.
function laterOf({ conditions, startedMs }: Selection): Sql {
  const ranges = FOLLOWING.map(
    (reason) => sql`(reason >= ${reason} AND reason < ${`${reason.slice(0, -1)};`})`,
  )
  const [from, to] = [startedMs - MAX_CLOCK_STEP_MS, startedMs + MAX_REQUEST_MS]
  return sql`SELECT * FROM audit_events WHERE ${joined([...conditions, sql`(${joined(ranges, ' OR ')})`], ' AND ')}
    AND +time_ms >= ${from} AND +time_ms < ${to} ${NEWEST_FIRST} LIMIT ${MAX_FOLLOWING}`
}

function selectionOf(query: AuditQuery, within: TenantOfIssuers | undefined): Selection {
  const conditions: Sql[] = []
  const where = (texts: TemplateStringsArray, ...parts: Sql['parts']) =>
    void conditions.push(sql(texts, ...parts))
  for (const [name, column] of EQUAL) {
    const value = query[name]
    if (value !== undefined) where`${text(column)} = ${value}`
  }
  if (within !== undefined)
    where`tenant = ${within.tenant} AND issuer IN (${listed(within.issuers)})`
  if (query.reason !== undefined) conditions.push(matching(query.reason))
  if (query.observed !== undefined) {
    const elements = listedAs(query.observed).map((one) => sql`${contains(text('observed'), one)}`)
    where`(${joined(elements, ' OR ')})`
  }
  if (query.tool !== undefined)
    where`${contains(text('call'), `"name":${JSON.stringify(query.tool)}`)}`
  if (query.change !== undefined) {
    const action = JSON.stringify(query.change)
    const isWhole = query.change.includes('.')
    const member = `"action":${isWhole ? action : `${action.slice(0, -1)}.`}`
    where`${contains(text('change'), member)}`
  }
  const startedMs = requestStart(query.requestId ?? '')
  if (query.requestId !== undefined) {
    where`request_id = ${query.requestId}`
    if (query.cursor !== undefined)
      where`time_ms >= ${startedMs - MAX_CLOCK_STEP_MS} AND time_ms < ${startedMs + MAX_REQUEST_MS}`
  }
  if (query.since !== undefined) where`time_ms >= ${Date.parse(query.since)}`
  if (query.until !== undefined) where`time_ms < ${Date.parse(query.until)}`
  if (query.cursor !== undefined) {
    const dot = query.cursor.indexOf('.')
    const [ms, id] = [Number(query.cursor.slice(0, dot)), query.cursor.slice(dot + 1)]
    where`(time_ms, id) < (${ms}, ${id})`
  }
  return { conditions, startedMs }
}

/** Returns a condition. A reason without `:` matches every detail. */
function matching(reason: string): Sql {
  if (reason.includes(':')) return sql`reason = ${reason}`
  // `;` follows `:` in ASCII, so the range contains every `code:detail` and can use an index.
  return sql`(reason = ${reason} OR (reason >= ${`${reason}:`} AND reason < ${`${reason};`}))`
}

/** Returns how a JSON list contains the reason: as an element, or, without `:`, before a detail. */
function listedAs(reason: string): readonly string[] {
  const element = JSON.stringify(reason)
  return reason.includes(':') ? [element] : [element, `${element.slice(0, -1)}:`]
}

/** Merges rows and events of blocks into a page, newest first. */
function pageOf(
  rows: readonly AuditRow[],
  { events, onlyAfterMs }: BlockEventsFound,
  limit: number,
): AuditPage {
  const all = [
    ...rows.map((row) => ({ ms: row.time_ms, event: eventOfRow(row) })),
    ...events.map((event) => ({ ms: Date.parse(event.time), event })),
  ]
  const certain = onlyAfterMs === undefined ? all : all.filter(({ ms }) => ms > onlyAfterMs)
  certain.sort((a, b) => b.ms - a.ms || (a.event.id < b.event.id ? 1 : -1))
  const page = certain.slice(0, limit)
  const last = page.at(-1)
  if (certain.length > limit && last !== undefined)
    return { events: page.map(({ event }) => event), cursor: `${last.ms}.${last.event.id}` }
  // The search ended early. Events of this millisecond and earlier ones are on the next page.
  const rest = onlyAfterMs === undefined ? {} : { cursor: `${onlyAfterMs + 1}.${FIRST_ID}` }
  return { events: page.map(({ event }) => event), ...rest }
}

/** Precedes every id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
