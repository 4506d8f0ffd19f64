/**
 * The queue of the audit trail as a stream of Redis, for gateways without Cloudflare Queues. An entry
 * leaves the stream when a consumer has stored it, so the stream contains what is not stored yet.
 */
import type { RedisCommand, RedisConnection } from '../../redis/connection.ts'
import { readList, readResult, readText } from '../../redis/reply.ts'
import { createScript, runScript } from '../../redis/script.ts'
import { APPEND_EVENTS_SCRIPT } from '../../redis/scripts.generated.ts'
import type { QueueBinding } from '../queue/audit-queue.ts'
import { OVERFLOW_TTL_SECONDS } from './overflow.ts'

/** About 100 MB of ordinary events. */
const MAX_ENTRIES = 100_000
const GROUP = 'audit'
/** An entry that a consumer has not stored for this time is delivered to another one. */
const CLAIM_AFTER_MS = 15_000

/**
 * Creates the queue. A batch is appended completely or not at all, in one call. `sendBatch` rejects if
 * the stream would have more than `maxEntries` (default 100,000), or with `Unavailable`. A call without
 * a response is repeated, so an event may be appended twice.
 */
export function createStreamQueue(redis: RedisConnection, maxEntries = MAX_ENTRIES): QueueBinding {
  const append = createScript(APPEND_EVENTS_SCRIPT)
  const keys = [redis.keys.auditStream]
  return {
    async sendBatch(messages) {
      const events = messages.map(({ body }) => body)
      const args = [maxEntries, OVERFLOW_TTL_SECONDS, ...events]
      if ((await runScript(redis, append, keys, args)) !== 1)
        throw new Error('the stream of the audit trail is full')
    },
  }
}

export interface StreamEntry {
  /** Begins with the milliseconds since the epoch. */
  readonly id: string
  readonly body: string
}

/** Reads the stream as one consumer of a group. Each call throws `Unavailable` on failure. */
export type StreamReader = ReturnType<typeof createStreamReader>

/** Creates the reader. Its `consumer` should have the same name after a restart. */
export function createStreamReader(
  redis: RedisConnection,
  consumer: string,
  claimAfterMs = CLAIM_AFTER_MS,
) {
  const key = redis.keys.auditStream

  async function sendToGroup(commands: readonly RedisCommand[]): Promise<unknown> {
    const replies = await redis.send(commands)
    const last = replies.at(-1)
    if (!last?.error?.startsWith('NOGROUP')) return readResult(last)
    await redis.send([['XGROUP', 'CREATE', key, GROUP, '0', 'MKSTREAM']])
    return readResult((await redis.send(commands)).at(-1))
  }

  const readGroup = (max: number, from: string): RedisCommand => [
    'XREADGROUP',
    'GROUP',
    GROUP,
    consumer,
    'COUNT',
    max,
    'STREAMS',
    key,
    from,
  ]

  async function remove(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    // In this order: an entry that was only removed is acknowledged by the next reader.
    const commands = [
      ['XDEL', key, ...ids],
      ['XACK', key, GROUP, ...ids],
    ]
    for (const reply of await redis.send(commands)) readResult(reply)
  }

  return {
    /**
     * Returns at most `max` entries: those that this consumer has read and not removed, and those of
     * consumers that did not remove them for 15 s; if there are none, new ones.
     */
    async read(max: number): Promise<readonly StreamEntry[]> {
      const claim = [
        'XAUTOCLAIM',
        key,
        GROUP,
        consumer,
        claimAfterMs,
        '0-0',
        'COUNT',
        max,
        'JUSTID',
      ]
      const delivered = entriesOf(await sendToGroup([claim, readGroup(max, '0')]))
      await remove(delivered.flatMap(({ id, body }) => (body === undefined ? [id] : [])))
      const left = delivered.filter(isComplete)
      if (left.length > 0) return left
      return entriesOf(await sendToGroup([readGroup(max, '>')])).filter(isComplete)
    },
    /** Removes stored entries. */
    remove,
  }
}

/** `body` is undefined for an entry that was removed and not acknowledged. */
type DeliveredEntry = Pick<StreamEntry, 'id'> & { readonly body: string | undefined }

const isComplete = (entry: DeliveredEntry): entry is StreamEntry => entry.body !== undefined

/** Parses the reply of `XREADGROUP` for one stream. */
function entriesOf(reply: unknown): readonly DeliveredEntry[] {
  if (reply === null) return []
  const [stream] = readList(reply, 1)
  const [, entries] = readList(stream, 2)
  return readList(entries).map((entry) => {
    const [id, fields] = readList(entry, 2)
    return { id: readText(id), body: fields === null ? undefined : bodyOf(fields) }
  })
}

/** Returns the event. Fields that no gateway has written become text that is no event. */
function bodyOf(fields: unknown): string {
  const [name, value, ...others] = readList(fields)
  return name === 'event' && others.length === 0 ? readText(value) : JSON.stringify(fields)
}
