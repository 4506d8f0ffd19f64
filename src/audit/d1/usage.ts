/** Computes the usage of API keys in the audit database. */
import { STREAM_ENDED } from '../reason.ts'
import {
  type AuditUsage,
  groupByDay,
  groupByRoute,
  type RouteCount,
  type UsageCount,
} from '../usage.ts'
import type { AuditDatabase } from './database.ts'
import { withinQuery } from './schema.ts'

/** Days times reasons: less than 2 MB in an isolate. A year of a key has a few thousand. */
const MAX_COUNTS = 10_000

/** An index contains all of its columns, so the rows are not read. */
const COUNTS =
  'SELECT time_ms / 86400000 AS day, decision, reason, count(*) AS requests FROM audit_events ' +
  'WHERE api_key = ? AND time_ms >= ? AND time_ms < ? ' +
  // An ended stream has a second event. Its request is counted by the first one.
  `AND reason NOT LIKE '${STREAM_ENDED}%' ` +
  'GROUP BY time_ms / 86400000, decision, reason ORDER BY day, decision, reason LIMIT ?'

/** The same index finds the rows of a key. D1 permits 100 parameters. */
const routeCounts = (keys: number) =>
  'SELECT api_key AS "key", method, route, host, decision, count(*) AS requests FROM audit_events ' +
  `WHERE api_key IN (${Array(keys).fill('?').join(', ')}) AND time_ms >= ? AND time_ms < ? ` +
  `AND reason NOT LIKE '${STREAM_ENDED}%' GROUP BY api_key, method, route, host, decision ` +
  'ORDER BY api_key, route, host, method, decision LIMIT ?'

/** Creates an {@link AuditUsage}. Fails as {@link withinQuery} does. */
export const createAuditUsage = (db: AuditDatabase): AuditUsage => ({
  async usageOf(key, { sinceMs, untilMs }) {
    const counts = await withinQuery(async () => {
      const statement = db.prepare(COUNTS).bind(key, sinceMs, untilMs, MAX_COUNTS + 1)
      return (await statement.all<UsageCount>()).results
    }, [])
    return counts.length > MAX_COUNTS ? undefined : groupByDay(counts)
  },

  async routesOf(keys, { sinceMs, untilMs }) {
    if (keys.length === 0) return new Map()
    const counts = await withinQuery(async () => {
      const statement = db.prepare(routeCounts(keys.length))
      const values = [...keys, sinceMs, untilMs, MAX_COUNTS + 1]
      return (await statement.bind(...values).all<RouteCount>()).results
    }, [])
    return counts.length > MAX_COUNTS ? undefined : groupByRoute(counts)
  },
})
