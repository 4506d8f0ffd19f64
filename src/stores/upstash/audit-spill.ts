/** The spill of the audit trail in Redis: events, and the number of those that are lost. */
import type { AuditSpill } from '../../audit/spill.ts'
import { Unavailable } from '../../errors.ts'
import { type RedisCommand, type RedisRest, sentOnce } from './rest.ts'
import { resultOf } from './result.ts'
import { createScript } from './script.ts'

/** Sorted set of events (JSON) by the time they were kept, in milliseconds. */
export const SPILL_KEY = 'pc:audit:spill'
/** How many events are known to be lost, and are in no event yet. */
export const SPILL_LOST_KEY = 'pc:audit:lost'
/** Set of at most one event (JSON): it tells of lost ones, names nobody, and waits for the queue. */
export const SPILL_LOST_EVENT_KEY = 'pc:audit:lost-event'
/** About 7 MB of ordinary events; at the very most 82 MB. */
export const MAX_SPILLED_EVENTS = 10_000
/** 7 days: longer than any outage that is not noticed. */
export const SPILL_TTL_SECONDS = 604_800
/** Batches are known so long after they were kept; whoever repeats one does so within seconds. */
export const BATCH_TTL_SECONDS = 60

/**
 * KEYS: spill, count, lost event, batch. ARGV: now, events that there may be, ttl, ttl of the batch,
 * how many were lost before, and then each event. Adds to the count what was lost and what it cuts
 * off; returns the latter. A batch that was kept before changes nothing, and has the same answer.
 * The count is read first, and written before the cut: a value of a wrong type leaves all as it is.
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
 * KEYS: count, lost event. ARGV: what to take off the count, the event that tells of as many, ttl.
 * Returns 1; or 0, and changes nothing, where another event waits or the count is smaller by now.
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

export interface AuditSpillOptions {
  readonly redis: RedisRest
  /** Default {@link MAX_SPILLED_EVENTS}. */
  readonly maxEvents?: number
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * An {@link AuditSpill} in Upstash Redis. A sorted set rather than a list, because an event that is
 * kept twice is there once, and events are removed by what they are, not by where they stand. Throws
 * `Unavailable` for any failure or odd reply; Redis' own words are not kept.
 */
export function createAuditSpill({
  redis,
  maxEvents = MAX_SPILLED_EVENTS,
  now = Date.now,
}: AuditSpillOptions): AuditSpill {
  const keepBatch = createScript(KEEP_SCRIPT)
  const tell = createScript(TELL_SCRIPT)
  // A repetition that comes late could make a second event of the same id, of which one counts.
  const once = sentOnce(redis)

  return {
    async keep(id, events, lost) {
      const keys = [SPILL_KEY, SPILL_LOST_KEY, SPILL_LOST_EVENT_KEY, `pc:audit:batch:${id}`]
      const bounds = [now(), maxEvents, SPILL_TTL_SECONDS, BATCH_TTL_SECONDS]
      return count(await keepBatch(redis, keys, [...bounds, lost, ...events]))
    },
    async peek(max, lostEvent) {
      const replies = await redis.send([
        ['ZRANGE', SPILL_KEY, 0, max - 1],
        ['SMEMBERS', SPILL_LOST_EVENT_KEY],
        ['GET', SPILL_LOST_KEY],
      ])
      const [kept, waiting, number] = replies.map(resultOf)
      const events = textsOf(kept)
      const [told] = textsOf(waiting)
      const lost = number === null ? 0 : count(number)
      if (told !== undefined || lost === 0) return { events, lostEvent: told }
      const event = lostEvent(lost)
      const keys = [SPILL_LOST_KEY, SPILL_LOST_EVENT_KEY]
      const isTold = count(await tell(once, keys, [lost, event, SPILL_TTL_SECONDS])) === 1
      return { events, lostEvent: isTold ? event : undefined }
    },
    async forget({ events, lostEvent }) {
      const commands: RedisCommand[] = []
      if (events.length > 0) commands.push(['ZREM', SPILL_KEY, ...events])
      if (lostEvent !== undefined) commands.push(['SREM', SPILL_LOST_EVENT_KEY, lostEvent])
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
