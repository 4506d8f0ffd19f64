/** The overflow of the audit trail in Redis: stored events, and the number of lost ones. */

import { Unavailable } from '../../errors.ts'
import { type RedisCommand, type RedisRest, sentOnce } from '../../redis/rest.ts'
import { resultOf } from '../../redis/result.ts'
import { createScript, runScript } from '../../redis/script.ts'
import type { AuditOverflow } from '../overflow.ts'

/** Sorted set of events (JSON), scored by the time of storing, in milliseconds. */
export const OVERFLOW_KEY = 'pc:audit:spill'
/** Number of lost events that no event reports yet. */
export const OVERFLOW_LOST_KEY = 'pc:audit:lost'
/**
 * Set of at most one event (JSON). It reports lost events, contains no personal data, and waits for
 * the queue.
 */
export const OVERFLOW_LOST_EVENT_KEY = 'pc:audit:lost-event'
/** About 7 MB of ordinary events, or 82 MB of the largest events without an operator's change. */
export const MAX_OVERFLOW_EVENTS = 10_000
/** 7 days: longer than any outage that stays unnoticed. */
export const OVERFLOW_TTL_SECONDS = 604_800
/** How long a stored batch is recognized, in seconds. A retry follows within seconds. */
export const BATCH_TTL_SECONDS = 60

/**
 * KEYS: overflow, count, lost event, batch. ARGV:
 *
 * - the current time, and the maximum number of events;
 * - the TTL of the events, and the TTL of the batch;
 * - the number of events that were lost before;
 * - each event.
 *
 * Adds the events that were lost, and those that it removes, to the count. Returns the number of
 * removed events. A batch that was stored before changes nothing and gives the same result. The
 * script reads the count first and writes it before the removal, so a value of a wrong type leaves
 * the events unchanged.
 */
const KEEP_SCRIPT = `
local before = redis.call('GET', KEYS[4])
if before then return tonumber(before) end
local lost = tonumber(redis.call('GET', KEYS[2]) or '0') + tonumber(ARGV[5])
for at = 6, #ARGV do redis.call('ZADD', KEYS[1], ARGV[1], ARGV[at]) end
local cut = math.max(0, redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2]))
if lost + cut > 0 then
  redis.call('SET', KEYS[2], string.format('%.0f', lost + cut), 'EX', ARGV[3])
end
if cut > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], 0, cut - 1) end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[3])
redis.call('SET', KEYS[4], cut, 'EX', ARGV[4])
return cut
`

/**
 * KEYS: count, lost event. ARGV: the number to subtract from the count, the event that reports this
 * number, TTL. Returns 1. Returns 0, and changes nothing, if another event waits or if the count is
 * lower by now.
 */
const TELL_SCRIPT = `
local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
if left < 0 or redis.call('SCARD', KEYS[2]) > 0 then return 0 end
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
if left == 0 then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], string.format('%.0f', left), 'EX', ARGV[3]) end
return 1
`

export interface AuditOverflowOptions {
  readonly redis: RedisRest
  /** Maximum number of stored events. Default {@link MAX_OVERFLOW_EVENTS}. */
  readonly maxEvents?: number
  /** Returns the current time in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Creates an {@link AuditOverflow} in Upstash Redis. It uses a sorted set instead of a list. So an
 * event that is stored twice occurs once, and events are removed by value and not by position.
 * Throws `Unavailable` for any failure or malformed reply, without the text of Redis.
 */
export function createAuditOverflow({
  redis,
  maxEvents = MAX_OVERFLOW_EVENTS,
  now = Date.now,
}: AuditOverflowOptions): AuditOverflow {
  const keepBatch = createScript(KEEP_SCRIPT)
  const tell = createScript(TELL_SCRIPT)
  // Sent without a retry: a late retry could create a second event with the same id, and only one
  // of them would count.
  const once = sentOnce(redis)

  return {
    async keep(id, events, lost) {
      const keys = [
        OVERFLOW_KEY,
        OVERFLOW_LOST_KEY,
        OVERFLOW_LOST_EVENT_KEY,
        `pc:audit:batch:${id}`,
      ]
      const bounds = [now(), maxEvents, OVERFLOW_TTL_SECONDS, BATCH_TTL_SECONDS]
      return count(await runScript(redis, keepBatch, keys, [...bounds, lost, ...events]))
    },
    async peek(max, lostEvent) {
      const replies = await redis.send([
        ['ZRANGE', OVERFLOW_KEY, 0, max - 1],
        ['SMEMBERS', OVERFLOW_LOST_EVENT_KEY],
        ['GET', OVERFLOW_LOST_KEY],
      ])
      const [kept, waiting, number] = replies.map(resultOf)
      const events = textsOf(kept)
      const [told] = textsOf(waiting)
      const lost = number === null ? 0 : count(number)
      if (told !== undefined || lost === 0) return { events, lostEvent: told }
      const event = lostEvent(lost)
      const keys = [OVERFLOW_LOST_KEY, OVERFLOW_LOST_EVENT_KEY]
      const isTold =
        count(await runScript(once, tell, keys, [lost, event, OVERFLOW_TTL_SECONDS])) === 1
      return { events, lostEvent: isTold ? event : undefined }
    },
    async forget({ events, lostEvent }) {
      const commands: RedisCommand[] = []
      if (events.length > 0) commands.push(['ZREM', OVERFLOW_KEY, ...events])
      if (lostEvent !== undefined) commands.push(['SREM', OVERFLOW_LOST_EVENT_KEY, lostEvent])
      for (const reply of await redis.send(commands)) resultOf(reply)
    },
  }
}

function textsOf(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
  return reply.map(String)
}

function count(reply: unknown): number {
  const value = Number(reply)
  if (reply === null || !Number.isSafeInteger(value) || value < 0)
    throw new Unavailable('redis', 'malformed')
  return value
}
