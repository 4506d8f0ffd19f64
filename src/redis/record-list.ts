/** Lists of records that operators create, stored in Redis as JSON and read from the newest. */

import type * as z from 'zod/mini'
import type { ListFilter, Page, PageQuery } from '../validators/page.ts'
import { acknowledged, mayBeIncomplete } from './acknowledged.ts'
import type { RedisConnection } from './connection.ts'
import { endsKey } from './keys.ts'
import { readInteger, readList, readResult, readText, recordIn, sendCommand } from './reply.ts'
import { evalCommand, runText } from './script.ts'
import { TRIM_LIST_SCRIPT } from './scripts.generated.ts'

export interface RecordListOptions<Schema extends z.core.$ZodType> {
  readonly redis: RedisConnection
  /** A record is stored at the prefix followed by its id. */
  readonly prefix: string
  /**
   * Sorted set of the ids. Every score is 0: the ids are UUIDs of version 7, so their text sorts by
   * age. A second sorted set at `endsKey(index)` has the same ids with their expiry as the score, in
   * seconds since the epoch.
   */
  readonly index: string
  readonly schema: Schema
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Records of one read of a filtered page, which has at most {@link MAX_READS} of them. */
const READ_RECORDS = 200
const MAX_READS = 5
/** Records of one read that must go on until the page is full: less than 1 MB. */
const MAX_READ_RECORDS = 1_000

interface Found<Item> {
  readonly id: string
  readonly item: Item
}

const pageOf = <Item>(found: readonly Found<Item>[], cursor: string | undefined): Page<Item> => ({
  items: found.map(({ item }) => item),
  ...(cursor !== undefined && { cursor }),
})

/** How long the record of an incomplete removal is kept, in seconds, if the call is not repeated. */
const INCOMPLETE_SECONDS = 3_600

/** The score that scripts write for a record without expiry. */
export const NEVER_ENDS = '+inf'

/** Creates a list. Its methods throw `Unavailable` for a malformed reply or record. */
export function createRecordList<Schema extends z.core.$ZodType>({
  redis,
  prefix,
  index,
  schema,
  now,
}: RecordListOptions<Schema>) {
  type Item = z.output<Schema>
  const ends = endsKey(index)
  const keptSeconds = mayBeIncomplete(redis) ? INCOMPLETE_SECONDS : 0

  /** Returns records, and the last id that was read if there are more. */
  async function recordsAfter(cursor: string | undefined, limit: number) {
    const before = cursor === undefined ? '+' : `(${cursor}`
    const replies = await redis.send([
      evalCommand(TRIM_LIST_SCRIPT, [index, ends], [Math.floor(now() / 1000)]),
      ['ZREVRANGEBYLEX', index, before, '-', 'LIMIT', 0, limit + 1],
    ])
    const ids = readList(replies.map(readResult)[1]).map(readText)
    const shown = ids.slice(0, limit)
    const last = ids.length > limit ? shown.at(-1) : undefined
    if (shown.length === 0) return { found: [], last }
    const reply = await sendCommand(redis, ['MGET', ...shown.map((id) => prefix + id)])
    const found = readList(reply, shown.length).flatMap((text, at): Found<Item>[] =>
      text === null ? [] : [{ id: shown[at] ?? '', item: recordIn(text, schema) }],
    )
    return { found, last }
  }

  return {
    /** Returns the keys that a script writes together: the record, the index, and its expiries. */
    keysOf: (id: string): readonly string[] => [prefix + id, index, ends],

    /**
     * Returns a page. With a filter, a page has only records for which `isListed` returns true, and ends
     * after 1,000 records that were read: then it may have fewer than `limit`, and a cursor. With
     * `hidesOthers`, it ends at no other record than one that is listed, however many it must read.
     */
    async list({ limit, cursor }: PageQuery, filter?: ListFilter<Item>): Promise<Page<Item>> {
      const found: Found<Item>[] = []
      let after = cursor
      const { isListed, hidesOthers = false } = filter ?? {}
      const reads = isListed === undefined ? 1 : hidesOthers ? Number.POSITIVE_INFINITY : MAX_READS
      const size = isListed === undefined ? limit : hidesOthers ? MAX_READ_RECORDS : READ_RECORDS
      for (let read = 0; read < reads; read += 1) {
        const next = await recordsAfter(after, size)
        found.push(...next.found.filter(({ item }) => isListed?.(item) ?? true))
        if (found.length > limit) return pageOf(found.slice(0, limit), found[limit - 1]?.id)
        after = next.last
        if (after === undefined) break
      }
      return pageOf(found, after)
    },

    /**
     * How long a removal keeps the record itself, so that the call can be repeated until lanes and replicas have it.
     * 0: not at all.
     */
    keptSeconds,

    /** Deletes a record that was kept. The removal is complete, so a failure is ignored: the record expires by itself. */
    async forget(id: string): Promise<void> {
      if (keptSeconds === 0) return
      const commands = [
        ['DEL', prefix + id],
        ['ZREM', index, id],
        ['ZREM', ends, id],
      ]
      await redis.send(commands).catch(() => {})
    },

    /** Returns undefined if the record does not exist. */
    async find(id: string): Promise<Item | undefined> {
      const text = await sendCommand(redis, ['GET', prefix + id])
      return text === null ? undefined : recordIn(text, schema)
    },

    /**
     * Runs a script, over another connection to the control lane if one is given. Throws `Unavailable` if the script
     * fails or does not return a number.
     */
    async run(
      script: string,
      keys: readonly string[],
      values: readonly (string | number)[],
      over: RedisConnection = redis,
    ): Promise<number> {
      return readInteger(await runText(acknowledged(over), script, keys, values))
    },
  }
}
