/** Computes the usage of API keys in the audit database. */
import { eventOfLine } from '../blocks/line.ts'
import type { AuditEvent } from '../event.ts'
import { STREAM_ENDED } from '../reason.ts'
import {
  groupByDay,
  groupByRoute,
  type RouteCount,
  type UsageCount,
  type UsageDay,
  type UsagePeriod,
  type UsageRoute,
} from '../usage.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import { rowsOf, type TrailDatabase } from './database.ts'
import { withinQuery } from './schema.ts'
import { listed, type Sql, sql } from './statement.ts'

/** Days times reasons: less than 2 MB in an isolate. A year of a key has a few thousand. */
const MAX_COUNTS = 10_000

/** An ended stream has a second event. Its request is counted by the first one. */
const WITHOUT_ENDS = sql`reason NOT LIKE ${`${STREAM_ENDED}%`}`

/** An index contains all of its columns, so the rows are not read. */
const dailyInRows = (key: string, { sinceMs, untilMs }: UsagePeriod): Sql =>
  sql`SELECT time_ms / 86400000 AS day, decision, reason, count(*) AS requests FROM audit_events
    WHERE api_key = ${key} AND time_ms >= ${sinceMs} AND time_ms < ${untilMs} AND ${WITHOUT_ENDS}
    GROUP BY time_ms / 86400000, decision, reason ORDER BY day, decision, reason LIMIT ${MAX_COUNTS + 1}`
const daily = (key: string, { sinceMs, untilMs }: UsagePeriod): Sql =>
  sql`SELECT day, decision, reason, sum(requests) AS requests FROM audit_usage
    WHERE api_key = ${key} AND max_ms < ${untilMs} AND min_ms >= ${sinceMs}
    GROUP BY day, decision, reason ORDER BY day, decision, reason LIMIT ${MAX_COUNTS + 1}`

/** The same index finds the rows of a key. D1 permits 100 parameters. */
const routesInRows = (keys: readonly string[], { sinceMs, untilMs }: UsagePeriod): Sql =>
  sql`SELECT api_key AS "key", method, route, host, decision, count(*) AS requests FROM audit_events
    WHERE api_key IN (${listed(keys)}) AND time_ms >= ${sinceMs} AND time_ms < ${untilMs} AND ${WITHOUT_ENDS}
    GROUP BY api_key, method, route, host, decision
    ORDER BY api_key, route, host, method, decision LIMIT ${MAX_COUNTS + 1}`
const routes = (keys: readonly string[], { sinceMs, untilMs }: UsagePeriod): Sql =>
  sql`SELECT api_key AS "key", method, route, host, decision, sum(requests) AS requests FROM audit_usage
    WHERE api_key IN (${listed(keys)}) AND max_ms < ${untilMs} AND min_ms >= ${sinceMs}
    GROUP BY api_key, method, route, host, decision
    ORDER BY api_key, route, host, method, decision LIMIT ${MAX_COUNTS + 1}`

/** Blocks at an edge of the period, of which only a part of the events counts. */
const edges = (keys: readonly string[], { sinceMs, untilMs }: UsagePeriod): Sql =>
  sql`SELECT ${BLOCK_COLUMNS} FROM audit_blocks WHERE first_seq IN (SELECT first_seq FROM audit_usage
    WHERE api_key IN (${listed(keys)}) AND ((min_ms < ${sinceMs} AND max_ms >= ${sinceMs})
      OR (min_ms < ${untilMs} AND max_ms >= ${untilMs})))`

const DAY_MS = 86_400_000

/** Creates the queries of usage. Fails as {@link withinQuery} does. */
export function createAuditUsage(db: TrailDatabase) {
  const all = <Row>(statement: Sql): Promise<readonly Row[]> =>
    withinQuery(() => rowsOf<Row>(db, statement), [])

  /**
   * Returns the events of keys that the counts of whole blocks leave out. A count is of the events with the
   * same key, day, route, decision and reason, and its times are theirs.
   */
  async function atEdges(
    keys: readonly string[],
    period: UsagePeriod,
  ): Promise<readonly AuditEvent[]> {
    const { sinceMs, untilMs } = period
    const rows = await all<BlockRow>(edges(keys, period))
    const found: AuditEvent[] = []
    for (const row of rows) {
      const events = (await blockOf(db, row)).lines.map(eventOfLine)
      for (const group of groupsOf(events, keys)) {
        const ms = group.map(({ time }) => Date.parse(time))
        const isCounted = Math.min(...ms) >= sinceMs && Math.max(...ms) < untilMs
        if (isCounted) continue
        found.push(...group.filter((_, at) => isWithin(ms[at] ?? 0, sinceMs, untilMs)))
      }
    }
    return found
  }

  return {
    /**
     * Returns the days with requests, the earliest first. Returns undefined if the period has too many
     * different days and reasons.
     */
    async usageOf(key: string, period: UsagePeriod): Promise<readonly UsageDay[] | undefined> {
      const rows = await all<UsageCount>(dailyInRows(key, period))
      const counted = await all<UsageCount>(daily(key, period))
      if (rows.length > MAX_COUNTS || counted.length > MAX_COUNTS) return undefined
      const edge = (await atEdges([key], period)).map(({ time, decision, reason }) => ({
        ...{ day: Math.floor(Date.parse(time) / DAY_MS), decision, reason },
        requests: 1,
      }))
      return groupByDay([...rows, ...counted, ...edge].sort((a, b) => a.day - b.day))
    },

    /**
     * Returns the routes with requests of each key, by the id of the key. At most 50 keys. Returns
     * undefined if there are too many different routes.
     */
    async routesOf(
      keys: readonly string[],
      period: UsagePeriod,
    ): Promise<ReadonlyMap<string, readonly UsageRoute[]> | undefined> {
      if (keys.length === 0) return new Map()
      const rows = await all<RouteCount>(routesInRows(keys, period))
      const counted = await all<RouteCount>(routes(keys, period))
      if (rows.length > MAX_COUNTS || counted.length > MAX_COUNTS) return undefined
      const edge = (await atEdges(keys, period)).map(
        ({ actor, method, route, host = null, decision }): RouteCount => ({
          ...{ key: actor.key ?? '', method, route, host, decision },
          requests: 1,
        }),
      )
      return groupByRoute([...rows, ...counted, ...edge].sort(inOrder))
    },
  }
}

const isWithin = (ms: number, sinceMs: number, untilMs: number) => ms >= sinceMs && ms < untilMs

/** Groups the events of keys as the counts of a block do. */
function groupsOf(events: readonly AuditEvent[], keys: readonly string[]): Iterable<AuditEvent[]> {
  const groups = new Map<string, AuditEvent[]>()
  for (const event of events) {
    const { actor, time, decision, reason, method, route, host } = event
    if (actor.key === undefined || !keys.includes(actor.key)) continue
    if (reason.startsWith(STREAM_ENDED)) continue
    const day = Math.floor(Date.parse(time) / DAY_MS)
    const place = JSON.stringify([actor.key, day, decision, reason, method, route, host])
    groups.set(place, [...(groups.get(place) ?? []), event])
  }
  return groups.values()
}

/** The order that {@link groupByRoute} needs: as that of the database, with null first. */
function inOrder(one: RouteCount, other: RouteCount): number {
  for (const name of ['key', 'route', 'host', 'method', 'decision'] as const) {
    const [a, b] = [one[name] ?? '', other[name] ?? '']
    if (a !== b) return a < b ? -1 : 1
  }
  return 0
}
