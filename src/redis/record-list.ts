/** Lists of records that operators create, stored in Redis as JSON and read from the newest. */

import type * as z from 'zod/mini'
import type { Page, PageQuery } from '../validators/page.ts'
import type { RedisConnection } from './connection.ts'
import { endsKey } from './keys.ts'
import { integerOf, listOf, recordIn, resultOf, sendCommand, textOf } from './reply.ts'
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

  return {
    /** Returns the keys that a script writes together: the record, the index, and its expiries. */
    keysOf: (id: string): readonly string[] => [prefix + id, index, ends],

    async list({ limit, cursor }: PageQuery): Promise<Page<Item>> {
      const before = cursor === undefined ? '+' : `(${cursor}`
      const replies = await redis.send([
        evalCommand(TRIM_LIST_SCRIPT, [index, ends], [Math.floor(now() / 1000)]),
        ['ZREVRANGEBYLEX', index, before, '-', 'LIMIT', 0, limit + 1],
      ])
      const ids = listOf(replies.map(resultOf)[1]).map(textOf)
      const shown = ids.slice(0, limit)
      if (shown.length === 0) return { items: [] }
      const reply = await sendCommand(redis, ['MGET', ...shown.map((id) => prefix + id)])
      const texts = listOf(reply, shown.length)
      const items = texts.filter((text) => text !== null).map((text) => recordIn(text, schema))
      return ids.length > limit ? { items, cursor: String(shown.at(-1)) } : { items }
    },

    /** Returns undefined if the record does not exist. */
    async find(id: string): Promise<Item | undefined> {
      const text = await sendCommand(redis, ['GET', prefix + id])
      return text === null ? undefined : recordIn(text, schema)
    },

    /** Runs a script. Throws `Unavailable` if the script fails or does not return a number. */
    async run(
      script: string,
      keys: readonly string[],
      values: readonly (string | number)[],
    ): Promise<number> {
      return integerOf(await runText(redis, script, keys, values))
    },
  }
}
