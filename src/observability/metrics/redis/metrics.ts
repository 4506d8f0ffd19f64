import type { RedisConnection } from '../../../redis/connection.ts'
import { endsKey } from '../../../redis/keys.ts'
import { malformed, readList, readResult } from '../../../redis/reply.ts'
import { createScript, runScript } from '../../../redis/script.ts'
import { ADD_TOTALS_SCRIPT } from '../../../redis/scripts.generated.ts'
import type { MetricsStore } from '../store.ts'

/** Longer than any gateway is idle. Prometheus handles a counter that restarts. */
const METRICS_TTL_SECONDS = 2_592_000
/** TTL of the number of an isolate's last report. */
const REPORT_TTL_SECONDS = 3_600
/** Maximum number of series of all gateways together: about 1.5 MB. */
const MAX_TOTAL_SERIES = 10_000
/** Three report intervals and some seconds. */
const RECENT_MS = 35_000

const DROPPED_SERIES = '["portcullis_metrics_dropped_total"]'

/**
 * Creates a {@link MetricsStore} in Upstash Redis. It stores at most 10,000 series plus those of
 * one report. Counts of further series are added to the series of dropped counts. Times are from
 * the clocks of the isolates. Throws `Unavailable` for a malformed reply.
 */
export function createMetricsStore(redis: RedisConnection): MetricsStore {
  const script = createScript(ADD_TOTALS_SCRIPT)
  const { metrics, metricsIsolates, metricsReport, banRecords, overflow: spill } = redis.keys
  return {
    async add({ isolate, number, counts, open, nowMs }) {
      const members = [isolate, ...new Set(open.map((name) => `${name} ${isolate}`))]
      const keys = [metrics, metricsReport + isolate, metricsIsolates]
      await runScript(redis, script, keys, [
        ...[number, MAX_TOTAL_SERIES, DROPPED_SERIES, METRICS_TTL_SECONDS, REPORT_TTL_SECONDS],
        ...[nowMs, nowMs - RECENT_MS, members.length, ...members],
        ...[...counts].flat(),
      ])
    },
    async read(nowMs) {
      const replies = await redis.send([
        ['HGETALL', metrics],
        ['ZRANGEBYSCORE', metricsIsolates, nowMs - RECENT_MS, '+inf'],
        ['ZREVRANGE', metricsIsolates, 0, 0, 'WITHSCORES'],
        ['ZCOUNT', endsKey(banRecords.index), `(${Math.floor(nowMs / 1000)}`, '+inf'],
        ['ZCARD', spill],
      ])
      const [totals, members, last, bans, overflow] = replies.map(readResult)
      const names = textsOf(members)
      const open = new Map<string, number>()
      for (const name of names) {
        const [dependency, isolate] = name.split(' ')
        if (dependency === undefined || isolate === undefined) continue
        open.set(dependency, (open.get(dependency) ?? 0) + 1)
      }
      const lastReport = textsOf(last)[1]
      return {
        counts: readCounts(textsOf(totals)),
        isolates: names.filter((name) => !name.includes(' ')).length,
        open,
        lastReportMs: lastReport === undefined ? undefined : readNumber(lastReport),
        bans: readNumber(bans),
        overflowEvents: readNumber(overflow),
      }
    },
  }
}

const textsOf = (reply: unknown): readonly string[] => readList(reply).map(String)

function readNumber(reply: unknown): number {
  const number = Number(reply)
  if (reply === null || !Number.isFinite(number)) throw malformed()
  return number
}

/** Names and values alternate. */
function readCounts(flat: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (let at = 0; at + 1 < flat.length; at += 2)
    counts.set(flat[at] as string, readNumber(flat[at + 1]))
  return counts
}
