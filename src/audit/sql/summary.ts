/** Summarizes decisions: from the counts of hours, or from the newest blocks if these do not have what a query asks for. */
import { countedOfLine } from '../blocks/line.ts'
import type { AuditEvent } from '../event.ts'
import { DECISIONS } from '../event-schema.ts'
import { DURATION_BOUNDS_MS, eachPair, type HourCounts, hourMs, hourOf } from '../hour-counts.ts'
import type { AuditQuery, TenantOfIssuers } from '../log.ts'
import { type Counter, createCounter, type Summary } from '../summary.ts'
import { type BlockRow, linesWith, textOf } from './block-rows.ts'
import { extentOf, matcherOf, NEWEST_FIRST, needlesOf, olderThan, termsOf } from './block-search.ts'
import { rowsOf, type TrailDatabase } from './database.ts'
import { eachHour, firstHour } from './hour-rows.ts'
import { isMissing, withinQuery } from './schema.ts'
import { sql } from './statement.ts'

/** Events and blocks that one summary reads. Blocks of a gateway with little load have few events. */
const MAX_EVENTS = 12_500
const MAX_BLOCKS = 100
/** Blocks whose filter one summary reads: five million events, because a summary has no next page. */
const MAX_FILTERS = 20_000
/** For the callers beside the counts of hours: at most 2,500 events. */
const SAMPLED_BLOCKS = 10
/** Of about 20 KB each. */
const BLOCKS_PER_READ = 50
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Filters that the counts of hours have. */
const COUNTED = new Set(['decision', 'reason', 'route', 'status', 'limit'])

interface FoundBlock extends Pick<BlockRow, 'first_seq' | 'last_seq' | 'events'> {
  readonly max_ms: number
}

interface Period {
  readonly sinceMs: number
  readonly untilMs: number
}

/**
 * Creates the count of the events in a database. Events that earlier versions stored as rows are not counted. Fails
 * as {@link withinQuery} does.
 */
export function createAuditSummary(db: TrailDatabase) {
  /** Calls `each` with the newest events. Returns since when it was called with all of them. */
  async function eachNewest(
    [query, within]: readonly [AuditQuery, TenantOfIssuers | undefined],
    period: Period,
    maxBlocks: number,
    each: (event: AuditEvent) => void,
  ): Promise<number> {
    const { sinceMs, untilMs } = period
    const needles = needlesOf(query, within)
    const isWanted = matcherOf(query, within, period, undefined)
    const { condition, unreadMs } = await extentOf(
      db,
      { sinceMs, lastMs: untilMs - 1 },
      termsOf(query, within),
      { maxFilters: MAX_FILTERS },
    )
    let last: FoundBlock | undefined
    let eventsRead = 0
    /** Returns since when the counts are complete, if `next` is the newest block that is not counted. */
    const completeSince = (next: FoundBlock | undefined) =>
      Math.max(sinceMs, (next?.max_ms ?? unreadMs) + 1)
    for (let left = maxBlocks; ; left -= BLOCKS_PER_READ) {
      const size = Math.min(BLOCKS_PER_READ, left)
      // One more block shows from when on the counts are complete.
      const results: readonly FoundBlock[] = await rowsOf<FoundBlock>(
        db,
        sql`SELECT first_seq, last_seq, max_ms, events FROM audit_blocks WHERE ${condition}${olderThan(last)}
          ${NEWEST_FIRST} LIMIT ${size + 1}`,
      )
      for (const [at, row] of results.slice(0, size).entries()) {
        for (const line of linesWith(await textOf(db, row), needles)) {
          const event = countedOfLine(line)
          if (isWanted(event)) each(event)
        }
        eventsRead += row.last_seq - row.first_seq + 1
        if (eventsRead >= MAX_EVENTS) return completeSince(results[at + 1])
      }
      last = results[size - 1]
      const next = results[size]
      if (next === undefined || size === left) return completeSince(next)
    }
  }

  async function fromBlocks(
    query: AuditQuery,
    period: Period,
    within: TenantOfIssuers | undefined,
  ): Promise<Summary> {
    const counter = createCounter(period.sinceMs, period.untilMs)
    const sinceMs = await eachNewest([query, within], period, MAX_BLOCKS, counter.add)
    return counter.result(sinceMs)
  }

  async function fromHours(query: AuditQuery, asked: Period, fromMs: number): Promise<Summary> {
    const period = {
      sinceMs: Math.floor(Math.max(asked.sinceMs, fromMs) / MINUTE_MS) * MINUTE_MS,
      untilMs: Math.ceil(asked.untilMs / MINUTE_MS) * MINUTE_MS,
    }
    const since = Math.min(asked.sinceMs, period.sinceMs)
    const newCounter = () =>
      createCounter(Math.floor(since / MINUTE_MS) * MINUTE_MS, period.untilMs)
    let counter = newCounter()
    const names = [period.sinceMs, period.untilMs - 1].map((ms) =>
      hourOf(new Date(ms).toISOString()),
    )
    const callers: AuditEvent[] = []
    const [sampledSinceMs] = await Promise.all([
      eachNewest([query, undefined], period, SAMPLED_BLOCKS, (event) => void callers.push(event)),
      eachHour(db, names[0] ?? '', names[1] ?? '', (hour, counts) => {
        if (counts === undefined) {
          // Without this hour, only the counts after it are complete.
          counter = newCounter()
          period.sinceMs = Math.min(hourMs(hour) + HOUR_MS, period.untilMs)
        } else addHour(counter, hour, counts, query, period)
      }),
    ])
    for (const event of callers)
      if (Date.parse(event.time) >= period.sinceMs) counter.addCaller(event)
    return counter.result(period.sinceMs, Math.max(period.sinceMs, sampledSinceMs))
  }

  /** Returns since when the hours count every event. Undefined: no hour is counted. */
  async function completeSince(): Promise<number | undefined> {
    const first = await firstHour(db).catch((error: unknown) => {
      // A consumer has not migrated the database yet.
      if (isMissing(error)) return undefined
      throw error
    })
    if (first === undefined) return undefined
    return first.older > 0 ? hourMs(first.hour) + HOUR_MS : Number.NEGATIVE_INFINITY
  }

  async function summarize(
    query: AuditQuery,
    period: Period,
    within: TenantOfIssuers | undefined,
  ): Promise<Summary> {
    const isCounted = Object.keys(query).every((name) => COUNTED.has(name))
    const completeMs = isCounted && within === undefined ? await completeSince() : undefined
    const ofHours =
      completeMs === undefined || completeMs >= period.untilMs
        ? undefined
        : await fromHours(query, period, completeMs)
    if (ofHours !== undefined && Date.parse(ofHours.countedSince) <= period.sinceMs) return ofHours
    const ofBlocks = await fromBlocks(query, period, within)
    return ofHours !== undefined && ofHours.countedSince < ofBlocks.countedSince
      ? ofHours
      : ofBlocks
  }

  return {
    /** With `within`, only events of callers with this tenant. */
    summarize(
      query: AuditQuery,
      period: { readonly sinceMs: number; readonly untilMs: number },
      within?: TenantOfIssuers,
    ): Promise<Summary> {
      const { sinceMs, untilMs } = period
      return withinQuery(
        () => summarize(query, period, within),
        createCounter(sinceMs, untilMs).result(sinceMs),
      )
    },
  }
}

/** Adds the minutes of an hour that are in the period. */
function addHour(
  counter: Counter,
  hour: string,
  { kinds, minutes, durations }: HourCounts,
  query: AuditQuery,
  { sinceMs, untilMs }: Period,
): void {
  const { decision, reason, route, status } = query
  const isWanted = kinds.map(
    (kind) =>
      (decision === undefined || decision === kind[0]) &&
      (reason === undefined || reason === kind[1] || kind[1].startsWith(`${reason}:`)) &&
      (route === undefined || route === kind[2]) &&
      (status === undefined || status === kind[3]),
  )
  // Durations are of all kinds together.
  const hasFilter = [decision, reason, route, status].some((value) => value !== undefined)
  const beginMs = hourMs(hour)
  const ofKinds = new Array<number>(kinds.length).fill(0)
  const ofDurations = new Array<number>(DURATION_BOUNDS_MS.length + 1).fill(0)
  for (const [minute, pairs] of Object.entries(minutes)) {
    const ms = beginMs + Number(minute) * MINUTE_MS
    if (ms < sinceMs || ms >= untilMs) continue
    const ofMinute = { allow: 0, deny: 0, error: 0 }
    eachPair(pairs, (place, count) => {
      const kind = kinds[place]
      if (kind === undefined || isWanted[place] !== true) return
      ofMinute[kind[0]] += count
      ofKinds[place] = (ofKinds[place] ?? 0) + count
    })
    for (const decision of DECISIONS) counter.addTime(ms, decision, ofMinute[decision])
    if (hasFilter) continue
    eachPair(durations[minute] ?? [], (place, count) => {
      ofDurations[place] = (ofDurations[place] ?? 0) + count
    })
  }
  for (const [place, [...kind]] of kinds.entries()) {
    const count = ofKinds[place] ?? 0
    if (count > 0)
      counter.addKind(
        { decision: kind[0], reason: kind[1], route: kind[2], status: kind[3] },
        count,
      )
  }
  const last = DURATION_BOUNDS_MS.at(-1) ?? 0
  for (const [place, count] of ofDurations.entries())
    if (count > 0) counter.addDuration(DURATION_BOUNDS_MS[place] ?? last, count)
}
