/** Searches the blocks of the audit trail: finds them by time and filter, and reads their events. */
import { eventOfLine } from '../blocks/line.ts'
import { term } from '../blocks/terms.ts'
import type { AuditEvent } from '../event.ts'
import type { AuditQuery, TenantOfIssuers } from '../log.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import type { AuditDatabase } from './database.ts'
import { mayContain } from './filter-condition.ts'

/** Blocks whose events one query reads. A page is shorter, and has a cursor, if more are left. */
const MAX_BLOCKS = 200
/** If so many contain the same time that the next page would read them again. */
const MAX_OVERLAPPING_BLOCKS = 2_000
/** Blocks whose filter one query reads: ten million events, but fewer of a gateway with little load. */
const MAX_FILTERS = 20_000
const BLOCKS_PER_READ = 10

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
  readonly before: Place | undefined
  readonly limit: number
}

/**
 * Finds at most `limit` events. An early end is always before the last time of the search, so that the
 * next page makes progress. Rejects with the error of the database, and if too many blocks overlap.
 */
export async function searchBlocks(
  db: AuditDatabase,
  search: BlockSearch,
  maxBlocks = MAX_BLOCKS,
): Promise<BlockEventsFound> {
  const { query, within, period, before, limit } = search
  const { sinceMs, untilMs } = period
  const lastMs = Math.min(untilMs - 1, before?.ms ?? untilMs)
  const times = [sinceMs, lastMs]
  const [found, beyond] = await db.batch<{ first_seq: number; max_ms: number }>([
    db.prepare(candidates(db, termsOf(query, within), maxBlocks)).bind(...times),
    db.prepare(`SELECT max_ms FROM ${IN_ORDER} LIMIT 1 OFFSET ${MAX_FILTERS}`).bind(...times),
  ])
  const blocks = found?.results ?? []
  const unreadMs = beyond?.results[0]?.max_ms
  const needles = needlesOf(query)
  const isWanted = matcherOf(query, within, period, before)
  let events: readonly AuditEvent[] = []
  for (let at = 0; ; at += BLOCKS_PER_READ) {
    const next = blocks[at]
    const nextMs = next?.max_ms ?? unreadMs ?? Number.NEGATIVE_INFINITY
    const certain = events.filter(({ time }) => Date.parse(time) > nextMs)
    if (certain.length >= limit || nextMs === Number.NEGATIVE_INFINITY) return { events: certain }
    if (next === undefined || at >= maxBlocks) {
      if (nextMs + 1 < lastMs) return { events: certain, onlyAfterMs: nextMs }
      if (next === undefined || maxBlocks === MAX_OVERLAPPING_BLOCKS)
        throw new Error('too many blocks of the audit trail contain one time')
      return searchBlocks(db, search, MAX_OVERLAPPING_BLOCKS)
    }
    const seqs = blocks.slice(at, at + BLOCKS_PER_READ).map(({ first_seq }) => first_seq)
    const { results } = await db
      .prepare(
        `SELECT ${BLOCK_COLUMNS} FROM audit_blocks WHERE first_seq IN (${seqs.map(() => '?').join(', ')})`,
      )
      .bind(...seqs)
      .all<BlockRow>()
    const read = [...events]
    for (const row of results)
      for (const line of (await blockOf(db, row)).lines)
        if (needles.every((needle) => line.includes(needle))) {
          const event = eventOfLine(line)
          if (isWanted(event)) read.push(event)
        }
    events = newestFirst(read).slice(0, limit)
  }
}

const IN_ORDER =
  'audit_blocks WHERE max_ms >= ? AND min_ms <= ? ORDER BY max_ms DESC, first_seq DESC'

/** Returns the query of the newest blocks that may contain all terms. */
function candidates(db: AuditDatabase, terms: readonly string[], maxBlocks: number): string {
  if (terms.length === 0) return `SELECT first_seq, max_ms FROM ${IN_ORDER} LIMIT ${maxBlocks + 1}`
  return (
    `SELECT first_seq, max_ms FROM (SELECT first_seq, max_ms, terms FROM ${IN_ORDER} ` +
    `LIMIT ${MAX_FILTERS}) AS newest WHERE ${terms.map((one) => mayContain(db, one)).join(' AND ')} ` +
    `ORDER BY max_ms DESC, first_seq DESC LIMIT ${maxBlocks + 1}`
  )
}

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
export function needlesOf(query: AuditQuery): readonly string[] {
  const { subject, client, tenant, address, route, host, origin, key, requestId, decision } = query
  const values = [subject, client, tenant, address, route, host, origin, key, requestId, decision]
  return values.flatMap((value) => (value === undefined ? [] : JSON.stringify(value)))
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
