/** Erasing somebody from the events that wait in Redis for the queue. */
import { forgetting, type Person } from '../../audit/erasure.ts'
import { auditEventSchema } from '../../audit/event.ts'
import type { SpillRedaction } from '../../audit/spill.ts'
import { Unavailable } from '../../errors.ts'
import { SPILL_KEY } from './audit-spill.ts'
import type { RedisRest } from './rest.ts'
import { resultOf } from './result.ts'

/** 0.8 MB at the very most, usually a tenth of that. */
const PAGE_EVENTS = 100

/**
 * A {@link SpillRedaction} in Upstash Redis. Goes from the newest event to the oldest, for events
 * leave at the one end and join at the other: what moves meanwhile is seen twice, never passed over.
 * An event keeps its time, and its id, by which it is in order among those of the same time.
 */
export function createSpillRedaction(redis: RedisRest): SpillRedaction {
  async function page(index: number): Promise<readonly (readonly [string, string])[]> {
    const [from, to] = [-PAGE_EVENTS * (index + 1), -PAGE_EVENTS * index - 1]
    const [reply] = await redis.send([['ZRANGE', SPILL_KEY, from, to, 'WITHSCORES']])
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
          // Both or neither: an event in between would be lost.
          return [
            ['ZADD', SPILL_KEY, keptMs, left],
            ['ZREM', SPILL_KEY, text],
          ]
        })
        if (commands.length > 0) for (const reply of await redis.send(commands)) resultOf(reply)
        if (events.length < PAGE_EVENTS) return
      }
    },
  }
}

/** The event's text without somebody; the same text where they are not in it. */
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
