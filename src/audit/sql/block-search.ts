/** Searches the blocks of the audit trail: finds them by time and filter, and reads their events. */
import { MAX_SPAN_MS } from '../blocks/block.ts'
import { eventOfLine } from '../blocks/line.ts'
import { term } from '../blocks/terms.ts'
import type { AuditEvent } from '../event.ts'
import type { AuditQuery, TenantOfIssuers } from '../log.ts'
import { linesWith, textOf } from './block-rows.ts'
import { firstOf, rowsOf, type TrailDatabase } from './database.ts'
import { mayContain } from './filter-condition.ts'
import { isMissing } from './schema.ts'
import { joined, type Sql, sql, text } from './statement.ts'

/** Events and blocks that one query reads, at most. A page is shorter, and has a cursor, if more are left. */
const MAX_EVENTS = 12_500
const MAX_BLOCKS = 200
/** If so many contain the same time that the next page would read them again. */
const MAX_OVERLAPPING_BLOCKS = 2_000
/** Blocks whose filter one page reads: two million events, but fewer of a gateway with little load. */
const MAX_FILTERS = 8_000
/** The newest events are usually in the first block, and a second one shows that no other has newer ones. */
const FIRST_READ = 2
/** Of about 20 KB each. */
const MIN_PER_READ = 10
const MAX_PER_READ = 50

/** Times between which the events are, in milliseconds since the epoch. */
export interface Period {
  readonly sinceMs: number
  /** Exclusive. */
  readonly untilMs: number
}

/** The place of an event in the order of time and id. The search returns those before it. */
export interface Place {
  readonly ms: number
  readonly id: string
}

export interface BlockEventsFound {
  /** Newest first. */
  readonly events: readonly AuditEvent[]
  /** If the search ended early: it has found all events after this time, in milliseconds. */
  readonly onlyAfterMs?: number
}

export interface BlockSearch {
  readonly query: AuditQuery
  readonly within: TenantOfIssuers | undefined
  readonly period: Period
  /** When the request began that the query names. */
  readonly startedMs: number | undefined
  readonly before: Place | undefined
  readonly limit: number
}

/** A row of `audit_blocks`, as far as a search reads it. */
interface FoundBlock {
  readonly first_seq: number
  readonly last_seq: number
  readonly max_ms: number
  readonly events: Uint8Array
}

/**
 * Finds at most `limit` events. An early end is always before the last time of the search, so that the
 * next page makes progress. Rejects with the error of the database, and if too many blocks overlap.
 */
export async function searchBlocks(
  db: TrailDatabase,
  search: BlockSearch,
): Promise<BlockEventsFound> {
  const { query, within, period, before, limit } = search
  const lastMs = Math.min(period.untilMs - 1, before?.ms ?? period.untilMs)
  const terms = termsOf(query, within)
  const extent = await extentOf(db, { sinceMs: period.sinceMs, lastMs }, terms, search)
  const needles = needlesOf(query, within)
  const isWanted = matcherOf(query, within, period, before)
  let events: readonly AuditEvent[] = []
  let last: FoundBlock | undefined
  let [eventsRead, blocksRead] = [0, 0]
  for (;;) {
    const read = { events: eventsRead, blocks: blocksRead }
    const size = last === undefined ? FIRST_READ : nextSize(limit, events.length, read)
    const results = await rowsOf<FoundBlock>(db, nextBlocks(extent, last, size))
    const found = [...events]
    for (const row of results) {
      eventsRead += row.last_seq - row.first_seq + 1
      found.push(...(await eventsIn(db, row, needles, isWanted)))
    }
    events = newestFirst(found).slice(0, limit)
    blocksRead += results.length
    last = results.at(-1)
    const isEnd = results.length < size
    const nextMs = isEnd || last === undefined ? extent.unreadMs : last.max_ms
    const certain = events.filter(({ time }) => Date.parse(time) > nextMs)
    if (certain.length >= limit || nextMs === Number.NEGATIVE_INFINITY) return { events: certain }
    const isShort = isEnd || eventsRead >= MAX_EVENTS || blocksRead >= MAX_BLOCKS
    if (isShort && nextMs + 1 < lastMs) return { events: certain, onlyAfterMs: nextMs }
    if (isEnd || blocksRead >= MAX_OVERLAPPING_BLOCKS)
      throw new Error('too many blocks of the audit trail contain one time')
  }
}

/** Returns the wanted events of a block. */
async function eventsIn(
  db: TrailDatabase,
  row: Pick<FoundBlock, 'events'>,
  needles: readonly string[],
  isWanted: (event: AuditEvent) => boolean,
): Promise<readonly AuditEvent[]> {
  return linesWith(await textOf(db, row), needles)
    .map(eventOfLine)
    .filter(isWanted)
}

/** Returns how many blocks to read next, if the further ones have as many events, and wanted ones, as those before. */
function nextSize(
  limit: number,
  found: number,
  read: { readonly events: number; readonly blocks: number },
): number {
  const wanted = found === 0 ? 0 : Math.ceil(((limit - found) / found) * read.blocks) + 1
  const left = Math.ceil(((MAX_EVENTS - read.events) / read.events) * read.blocks)
  const most = Math.min(MAX_PER_READ, MAX_BLOCKS - read.blocks, left)
  // A search goes on behind its bounds only while blocks overlap.
  return most > 0 ? Math.min(Math.max(wanted, MIN_PER_READ), most) : MIN_PER_READ
}

/** The blocks that a search may read. */
interface Extent {
  readonly condition: Sql
  /** The latest time of the blocks before them, whose filters the search does not read. */
  readonly unreadMs: number
}

export const NEWEST_FIRST = text('ORDER BY max_ms DESC, first_seq DESC')

interface ExtentOptions {
  /** When the request began that a query names. */
  readonly startedMs?: number | undefined
  readonly maxFilters?: number
}

/** Returns the newest blocks that may contain all terms. */
export async function extentOf(
  db: TrailDatabase,
  { sinceMs, lastMs }: { readonly sinceMs: number; readonly lastMs: number },
  terms: readonly string[],
  { startedMs, maxFilters = MAX_FILTERS }: ExtentOptions,
): Promise<Extent> {
  const between = (ms: number): Sql =>
    sql`max_ms >= ${ms} AND max_ms <= ${lastMs + MAX_SPAN_MS} AND min_ms <= ${lastMs}`
  // The search reads the events of each such block, so it counts them itself.
  if (terms.length === 0) return { condition: between(sinceMs), unreadMs: Number.NEGATIVE_INFINITY }

  async function beyond(...conditions: readonly Sql[]): Promise<Extent> {
    const since = (ms: number) => joined([between(ms), ...conditions], ' AND ')
    const unread = await firstOf<{ readonly max_ms: number }>(
      db,
      sql`SELECT max_ms FROM audit_blocks WHERE ${since(sinceMs)} ${NEWEST_FIRST} LIMIT 1 OFFSET ${maxFilters}`,
    )
    return {
      condition: joined([since(unread?.max_ms ?? sinceMs), ...terms.map(mayContain)], ' AND '),
      unreadMs: unread?.max_ms ?? Number.NEGATIVE_INFINITY,
    }
  }
  if (startedMs === undefined) return beyond()
  try {
    return await beyond(sql`(start_ms IS NULL OR start_ms <= ${startedMs})`)
  } catch (error) {
    // The consumer has not migrated the database yet.
    if (isMissing(error)) return beyond()
    throw error
  }
}

/** Returns the query of the next blocks of a search. */
function nextBlocks({ condition }: Extent, last: FoundBlock | undefined, size: number): Sql {
  return sql`SELECT first_seq, last_seq, max_ms, events FROM audit_blocks
    WHERE ${condition}${olderThan(last)} ${NEWEST_FIRST} LIMIT ${size}`
}

/** Returns the rest of a condition, in the order of {@link NEWEST_FIRST}. */
export const olderThan = (last: Pick<FoundBlock, 'max_ms' | 'first_seq'> | undefined): Sql =>
  last === undefined
    ? text('')
    : sql` AND (max_ms, first_seq) < (${last.max_ms}, ${last.first_seq})`

const newestFirst = (events: readonly AuditEvent[]): readonly AuditEvent[] =>
  events
    .map((event) => ({ event, ms: Date.parse(event.time) }))
    .sort((a, b) => b.ms - a.ms || (a.event.id < b.event.id ? 1 : -1))
    .map(({ event }) => event)

export function termsOf(query: AuditQuery, within: TenantOfIssuers | undefined): readonly string[] {
  const terms: string[] = []
  for (const name of FIELDS) {
    const value = query[name]
    if (value !== undefined) terms.push(term(name, value))
  }
  if (within !== undefined) terms.push(term('tenant', within.tenant))
  return terms
}

/** Filters with a term of the same name. */
const FIELDS = [
  ...(['subject', 'client', 'tenant', 'address', 'status', 'decision', 'route', 'host'] as const),
  ...(['origin', 'key', 'reason', 'observed', 'tool', 'change', 'requestId'] as const),
]

/** Returns texts that the line of an event contains, so that few lines are parsed. */
export function needlesOf(
  query: AuditQuery,
  within: TenantOfIssuers | undefined,
): readonly string[] {
  const { subject, client, tenant, address, route, host, origin, key, requestId, decision } = query
  const values = [subject, client, tenant, address, route, host, origin, key, requestId, decision]
  if (within !== undefined) values.push(within.tenant)
  const { status, reason, observed, tool, change } = query
  return [
    ...[...values, tool].flatMap((value) => (value === undefined ? [] : JSON.stringify(value))),
    ...(status === undefined ? [] : [`"status":${status}`]),
    // What follows the beginning of a value depends on the value.
    ...[reason, observed, change].flatMap((value) =>
      value === undefined ? [] : JSON.stringify(value).slice(0, -1),
    ),
  ]
}

export function matcherOf(
  query: AuditQuery,
  within: TenantOfIssuers | undefined,
  { sinceMs, untilMs }: Period,
  before: Place | undefined,
): (event: AuditEvent) => boolean {
  const is = <Value>(wanted: Value | undefined, value: Value | null | undefined) =>
    wanted === undefined || wanted === value
  return (event) => {
    const { actor, call, change } = event
    const ms = Date.parse(event.time)
    return (
      ms >= sinceMs &&
      ms < untilMs &&
      (before === undefined || ms < before.ms || (ms === before.ms && event.id < before.id)) &&
      is(query.subject, actor.subject) &&
      is(query.client, actor.client) &&
      is(query.tenant, actor.tenant) &&
      is(query.key, actor.key) &&
      is(query.address, event.address) &&
      is(query.status, event.status) &&
      is(query.decision, event.decision) &&
      is(query.route, event.route) &&
      is(query.host, event.host) &&
      is(query.origin, event.origin) &&
      is(query.requestId, event.requestId) &&
      is(query.tool, call?.name) &&
      (query.reason === undefined || isReason(query.reason, event.reason)) &&
      (query.observed === undefined ||
        (event.observed ?? []).some((reason) => isReason(query.observed ?? '', reason))) &&
      (query.change === undefined || isAction(query.change, change?.action ?? '')) &&
      (within === undefined ||
        (actor.tenant === within.tenant && within.issuers.includes(actor.issuer ?? '')))
    )
  }
}

/** A reason without `:` matches every detail. */
const isReason = (wanted: string, reason: string): boolean =>
  reason === wanted || (!wanted.includes(':') && reason.startsWith(`${wanted}:`))

const isAction = (wanted: string, action: string): boolean =>
  action === wanted || (!wanted.includes('.') && action.startsWith(`${wanted}.`))
