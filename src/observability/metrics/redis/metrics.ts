/** Totals of the metrics of all isolates, in one hash in Upstash Redis. */

import { BAN_KEYS } from '../../../abuse/redis/bans.ts'
import { OVERFLOW_KEY } from '../../../audit/redis/overflow.ts'
import { Unavailable } from '../../../errors.ts'
import type { RedisRest } from '../../../redis/rest.ts'
import { resultOf } from '../../../redis/result.ts'
import { createScript, runScript } from '../../../redis/script.ts'
import type { MetricsStore } from '../store.ts'

/** Hash: the totals by name of the series. */
export const METRICS_KEY = 'pc:metrics:totals'
/**
 * Sorted set of the isolates and of their circuit breakers that are not closed, scored by the time
 * of the report.
 */
export const METRICS_ISOLATES_KEY = 'pc:metrics:isolates'
/** Longer than any gateway is idle. Prometheus handles a counter that restarts. */
export const METRICS_TTL_SECONDS = 2_592_000
/** TTL of the number of an isolate's last report, in seconds. */
export const REPORT_TTL_SECONDS = 3_600
/** Maximum number of series of all gateways together: about 1.5 MB. */
export const MAX_TOTAL_SERIES = 10_000
/** Three report intervals and some seconds, in milliseconds. */
const LATELY_MS = 35_000

/**
 * KEYS: totals, number of the isolate's last report, isolates. ARGV:
 *
 * - the number of this report;
 * - the maximum number of series, and the series that counts the excess;
 * - the TTL of the totals, and the TTL of the number;
 * - the current time, and the time before which isolates are removed;
 * - the number of members for the set of isolates, and these members;
 * - each series with the amount to add.
 *
 * A report that was applied before changes nothing.
 */
const ADD_SCRIPT = `
if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[2]) or '0') then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[5])
local members = tonumber(ARGV[8])
for at = 9, 8 + members do redis.call('ZADD', KEYS[3], ARGV[6], ARGV[at]) end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[7])
redis.call('EXPIRE', KEYS[3], ARGV[5])
local full = redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2])
for at = 9 + members, #ARGV, 2 do
  local series = ARGV[at]
  if full and redis.call('HEXISTS', KEYS[1], series) == 0 then series = ARGV[3] end
  redis.call('HINCRBY', KEYS[1], series, ARGV[at + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
`

const DROPPED_SERIES = '["portcullis_metrics_dropped_total"]'

/**
 * Creates a {@link MetricsStore} in Upstash Redis. It stores at most 10,000 series plus those of
 * one report. Counts of further series are added to the series of dropped counts. Times are from
 * the clocks of the isolates. Throws `Unavailable` for a malformed reply.
 */
export function createMetricsStore(rest: RedisRest): MetricsStore {
  const script = createScript(ADD_SCRIPT)
  return {
    async add({ isolate, number, series, values, open, nowMs }) {
      const members = [isolate, ...new Set(open.map((name) => `${name} ${isolate}`))]
      const keys = [METRICS_KEY, `pc:metrics:report:${isolate}`, METRICS_ISOLATES_KEY]
      await runScript(rest, script, keys, [
        ...[number, MAX_TOTAL_SERIES, DROPPED_SERIES, METRICS_TTL_SECONDS, REPORT_TTL_SECONDS],
        ...[nowMs, nowMs - LATELY_MS, members.length, ...members],
        ...series.flatMap((name, at) => [name, values[at] ?? 0]),
      ])
    },
    async read(nowMs) {
      const replies = await rest.send([
        ['HGETALL', METRICS_KEY],
        ['ZRANGEBYSCORE', METRICS_ISOLATES_KEY, nowMs - LATELY_MS, '+inf'],
        ['ZREVRANGE', METRICS_ISOLATES_KEY, 0, 0, 'WITHSCORES'],
        ['ZCOUNT', `${BAN_KEYS.index}:ends`, `(${Math.floor(nowMs / 1000)}`, '+inf'],
        ['ZCARD', OVERFLOW_KEY],
      ])
      const [totals, members, last, bans, spilled] = replies.map(resultOf)
      const names = textsOf(members)
      const open = new Map<string, number>()
      for (const name of names) {
        const [dependency, isolate] = name.split(' ')
        if (dependency === undefined || isolate === undefined) continue
        open.set(dependency, (open.get(dependency) ?? 0) + 1)
      }
      const lastReport = textsOf(last)[1]
      return {
        counts: countsOf(textsOf(totals)),
        isolates: names.filter((name) => !name.includes(' ')).length,
        open,
        lastReportMs: lastReport === undefined ? undefined : numberOf(lastReport),
        bans: numberOf(bans),
        overflowEvents: numberOf(spilled),
      }
    },
  }
}

function textsOf(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
  return reply.map(String)
}

function numberOf(reply: unknown): number {
  const number = Number(reply)
  if (reply === null || !Number.isFinite(number)) throw new Unavailable('redis', 'malformed')
  return number
}

/** Converts a hash in the form of Redis: names and values alternate. */
function countsOf(flat: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (let at = 0; at + 1 < flat.length; at += 2)
    counts.set(flat[at] as string, numberOf(flat[at + 1]))
  return counts
}
