/** The overflow of the audit trail in Redis: stored events, and the number of lost ones. */

import { type RedisCommand, type RedisConnection, sentOnce } from '../../redis/connection.ts'
import { malformed, readList, readResult } from '../../redis/reply.ts'
import { createScript, runScript } from '../../redis/script.ts'
import { KEEP_EVENTS_SCRIPT, REPORT_LOST_SCRIPT } from '../../redis/scripts.generated.ts'
import { forgetting, type Person } from '../erasure.ts'
import { auditEventSchema } from '../event-schema.ts'
import type { AuditOverflow } from '../overflow.ts'

/** About 7 MB of ordinary events, or 82 MB of the largest events without an operator's change. */
const MAX_OVERFLOW_EVENTS = 10_000
/** 7 days: longer than any outage that stays unnoticed. */
export const OVERFLOW_TTL_SECONDS = 604_800
/** How long a stored batch is recognized. A retry follows within seconds. */
const BATCH_TTL_SECONDS = 60
/** Events that a redaction reads at once: usually 0.08 MB, at most 0.8 MB without changes. */
const PAGE_EVENTS = 100

export interface AuditOverflowOptions {
  readonly redis: RedisConnection
  /** Maximum number of stored events. Default 10,000. */
  readonly maxEvents?: number
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
  now = () => Date.now(),
}: AuditOverflowOptions): AuditOverflow {
  const keepBatch = createScript(KEEP_EVENTS_SCRIPT)
  const reportLost = createScript(REPORT_LOST_SCRIPT)
  // Sent without a retry: a late retry could create a second event with the same id, and only one
  // of them would count.
  const once = sentOnce(redis)
  const { keys: names } = redis

  return {
    async keep(id, events, lost) {
      const keys = [
        names.overflow,
        names.overflowLost,
        names.overflowLostEvent,
        names.overflowBatch + id,
      ]
      const bounds = [now(), maxEvents, OVERFLOW_TTL_SECONDS, BATCH_TTL_SECONDS]
      return count(await runScript(redis, keepBatch, keys, [...bounds, lost, ...events]))
    },
    async peek(max, lostEvent) {
      const replies = await redis.send([
        ['ZRANGE', names.overflow, 0, max - 1],
        ['SMEMBERS', names.overflowLostEvent],
        ['GET', names.overflowLost],
      ])
      const [kept, waiting, number] = replies.map(readResult)
      const events = textsOf(kept)
      const [pending] = textsOf(waiting)
      const lost = number === null ? 0 : count(number)
      if (pending !== undefined || lost === 0) return { events, lostEvent: pending }
      const event = lostEvent(lost)
      const keys = [names.overflowLost, names.overflowLostEvent]
      const stored = await runScript(once, reportLost, keys, [lost, event, OVERFLOW_TTL_SECONDS])
      return { events, lostEvent: count(stored) === 1 ? event : undefined }
    },
    async forget({ events, lostEvent }) {
      const commands: RedisCommand[] = []
      if (events.length > 0) commands.push(['ZREM', names.overflow, ...events])
      if (lostEvent !== undefined) commands.push(['SREM', names.overflowLostEvent, lostEvent])
      for (const reply of await redis.send(commands)) readResult(reply)
    },
  }
}

/**
 * Creates the removal of a person's data from stored events. It reads from the newest event to the
 * oldest, because events are removed at the oldest end and added at the newest: an event that moves
 * meanwhile is read twice, never skipped. A redacted event keeps its time and its id, which orders
 * events of the same time.
 */
export function createOverflowRedaction(redis: RedisConnection) {
  const { overflow } = redis.keys
  return {
    /** Keeps the events. Does NOT cover events that are added meanwhile. */
    async redact(person: Person) {
      for (let newest = -1; ; newest -= PAGE_EVENTS) {
        const page = ['ZRANGE', overflow, newest - PAGE_EVENTS + 1, newest, 'WITHSCORES']
        const [reply] = await redis.send([page])
        const members = textsOf(reply && readResult(reply))
        const commands: RedisCommand[] = []
        for (let at = 0; at < members.length; at += 2) {
          const [text = '', keptMs = '0'] = members.slice(at, at + 2)
          const left = redacted(text, person)
          // Adds before it removes, so that the set contains the event at every moment.
          if (left !== text)
            commands.push(['ZADD', overflow, keptMs, left], ['ZREM', overflow, text])
        }
        if (commands.length > 0) for (const done of await redis.send(commands)) readResult(done)
        if (members.length < 2 * PAGE_EVENTS) return
      }
    },
  }
}

/** Returns the event's text without the data of a person; the same text if it has none. */
function redacted(text: string, person: Person): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return text
  }
  const event = auditEventSchema.safeParse(value).data
  if (event === undefined) return text
  const left = forgetting(event, person)
  return left === event ? text : JSON.stringify(left)
}

const textsOf = (reply: unknown): readonly string[] => readList(reply).map(String)

function count(reply: unknown): number {
  const value = Number(reply)
  if (reply === null || !Number.isSafeInteger(value) || value < 0) throw malformed()
  return value
}
