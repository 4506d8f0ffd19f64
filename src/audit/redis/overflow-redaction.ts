/** Erases a person from the audit events in the Redis overflow. */

import { Unavailable } from '../../errors.ts'
import { OVERFLOW_KEY } from '../../redis/keys.ts'
import { resultOf } from '../../redis/reply.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { forgetting, type Person } from '../erasure.ts'
import { auditEventSchema } from '../event.ts'
import type { OverflowRedaction } from '../overflow.ts'

/**
 * Number of events read at once: usually 0.08 MB, or 0.8 MB of the largest events without an
 * operator's change.
 */
const PAGE_EVENTS = 100

/**
 * Creates a {@link OverflowRedaction} in Upstash Redis. It reads from the newest event to the oldest,
 * because events are removed at the oldest end and added at the newest. An event that moves
 * meanwhile is read twice, never skipped. A redacted event keeps its time and its id, which orders
 * events of the same time.
 */
export function createOverflowRedaction(redis: RedisRest): OverflowRedaction {
  async function page(index: number): Promise<readonly (readonly [string, string])[]> {
    const [from, to] = [-PAGE_EVENTS * (index + 1), -PAGE_EVENTS * index - 1]
    const [reply] = await redis.send([['ZRANGE', OVERFLOW_KEY, from, to, 'WITHSCORES']])
    const members = reply && resultOf(reply)
    if (!Array.isArray(members)) throw new Unavailable('redis', 'malformed')
    const texts = members.map(String)
    return texts.flatMap((text, at) => (at % 2 === 0 ? [[text, texts[at + 1] ?? '0']] : []))
  }

  return {
    async redact(person) {
      for (let index = 0; ; index += 1) {
        const events = await page(index)
        const commands = events.flatMap(([text, keptMs]) => {
          const left = redacted(text, person)
          if (left === text) return []
          // Adds before it removes, so that the set contains the event at every moment.
          return [
            ['ZADD', OVERFLOW_KEY, keptMs, left],
            ['ZREM', OVERFLOW_KEY, text],
          ]
        })
        if (commands.length > 0) for (const reply of await redis.send(commands)) resultOf(reply)
        if (events.length < PAGE_EVENTS) return
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
