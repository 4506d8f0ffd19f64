/** The spill of the audit trail in Redis: one sorted set, and one counter. */
import type { AuditSpill } from '../../audit/spill.ts'
import { Unavailable } from '../../errors.ts'
import type { RedisCommand, RedisRest } from './rest.ts'
import { resultOf } from './result.ts'

/** Sorted set of events (JSON) by the time they were kept, in milliseconds. */
export const SPILL_KEY = 'pc:audit:spill'
/** How many events are known to be lost and not reported yet. */
export const SPILL_LOST_KEY = 'pc:audit:lost'
/** About 7 MB of ordinary events; at the very most 82 MB. */
export const MAX_SPILLED_EVENTS = 10_000
/** 7 days: longer than any outage that is not noticed. */
export const SPILL_TTL_SECONDS = 604_800

export interface AuditSpillOptions {
  readonly redis: RedisRest
  /** Default {@link MAX_SPILLED_EVENTS}. */
  readonly maxEvents?: number
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * An {@link AuditSpill} in Upstash Redis. A sorted set rather than a list, because its commands
 * can be repeated without harm, one of them says exactly how many events the bound cut off, and
 * events are removed by what they are, not by where they stand. Throws `Unavailable` for any
 * failure or odd reply; Redis' own words are not kept.
 */
export function createAuditSpill({
  redis,
  maxEvents = MAX_SPILLED_EVENTS,
  now = Date.now,
}: AuditSpillOptions): AuditSpill {
  async function run(commands: readonly RedisCommand[]): Promise<readonly unknown[]> {
    return (await redis.send(commands)).map(resultOf)
  }

  return {
    async keep(events, lost) {
      const keptMs = now()
      const [, cut] = await run([
        ['ZADD', SPILL_KEY, ...events.flatMap((event) => [keptMs, event])],
        ['ZREMRANGEBYRANK', SPILL_KEY, 0, -(maxEvents + 1)],
        ['EXPIRE', SPILL_KEY, SPILL_TTL_SECONDS],
        ...(lost === 0
          ? []
          : [
              ['INCRBY', SPILL_LOST_KEY, lost],
              ['EXPIRE', SPILL_LOST_KEY, SPILL_TTL_SECONDS],
            ]),
      ])
      return count(cut)
    },
    async peek(max) {
      const [events, lost] = await run([
        ['ZRANGE', SPILL_KEY, 0, max - 1],
        ['GETDEL', SPILL_LOST_KEY],
      ])
      if (!Array.isArray(events)) throw new Unavailable('redis', 'malformed')
      return { events: events.map(String), lost: lost === null ? 0 : count(lost) }
    },
    async forget(events) {
      await run([['ZREM', SPILL_KEY, ...events]])
    },
  }
}

function count(reply: unknown): number {
  const value = Number(reply)
  if (reply === null || !Number.isSafeInteger(value) || value < 0)
    throw new Unavailable('redis', 'malformed')
  return value
}
