/** Records of operators in Redis: JSON with an id, in lists that are read from the newest. */
import type * as z from 'zod'
import { Unavailable } from '../../errors.ts'
import type { Page, PageQuery } from '../../operators/page.ts'
import type { RedisCommand, RedisRest } from './rest.ts'
import { resultOf } from './result.ts'

/** Where the records of one kind are. */
export interface RecordListOptions<Schema extends z.ZodType> {
  readonly rest: RedisRest
  /** Records are at this and their id. */
  readonly prefix: string
  /**
   * Sorted set of the ids, all with the score 0: they are UUIDs of version 7, so the order of their
   * text is that of their age. Beside it, at `<index>:ends`, the same ids by the second they end.
   */
  readonly index: string
  readonly schema: Schema
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Keys that whoever writes a record has to write, too. */
export interface RecordKeys {
  readonly record: string
  readonly index: string
  readonly ends: string
}

export interface RecordList<Item> {
  list(page: PageQuery): Promise<Page<Item>>
  /** Undefined: there is none. */
  find(id: string): Promise<Item | undefined>
  keysOf(id: string): RecordKeys
  /** Runs a script. Throws `Unavailable` if it failed or answered anything but a number. */
  run(
    script: string,
    keys: readonly string[],
    values: readonly (string | number)[],
  ): Promise<number>
}

/** Scripts write this as the end of what does not end. */
export const NEVER_ENDS = '+inf'

/**
 * Forgets ids whose records have ended. KEYS: index, ends. ARGV: now, in seconds. A bounded step,
 * because a list is read more often than a thousand records end.
 */
const TRIM_SCRIPT = `
local ended = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 1000)
if #ended > 0 then
  redis.call('ZREM', KEYS[1], unpack(ended))
  redis.call('ZREM', KEYS[2], unpack(ended))
end
return #ended
`

/** Makes the reader. Throws `Unavailable` for every reply and record that decides nothing. */
export function createRecordList<Schema extends z.ZodType>({
  rest,
  prefix,
  index,
  schema,
  now,
}: RecordListOptions<Schema>): RecordList<z.output<Schema>> {
  const ends = `${index}:ends`

  async function ask(...commands: RedisCommand[]): Promise<readonly unknown[]> {
    return (await rest.send(commands)).map(resultOf)
  }

  function parse(text: unknown): z.output<Schema> {
    const parsed = schema.safeParse(jsonOf(text))
    if (!parsed.success) throw new Unavailable('redis', 'malformed')
    return parsed.data
  }

  return {
    keysOf: (id) => ({ record: prefix + id, index, ends }),

    async list({ limit, cursor }) {
      const before = cursor === undefined ? '+' : `(${cursor}`
      const [, ids] = await ask(
        ['EVAL', TRIM_SCRIPT, 2, index, ends, Math.floor(now() / 1000)],
        ['ZREVRANGEBYLEX', index, before, '-', 'LIMIT', 0, limit + 1],
      )
      if (!isTexts(ids)) throw new Unavailable('redis', 'malformed')
      const shown = ids.slice(0, limit)
      if (shown.length === 0) return { items: [] }
      const [texts] = await ask(['MGET', ...shown.map((id) => prefix + id)])
      if (!Array.isArray(texts) || texts.length !== shown.length)
        throw new Unavailable('redis', 'malformed')
      const items = texts.filter((text) => text !== null).map(parse)
      return ids.length > limit ? { items, cursor: String(shown.at(-1)) } : { items }
    },

    async find(id) {
      const [text] = await ask(['GET', prefix + id])
      return text === null ? undefined : parse(text)
    },

    async run(script, keys, values) {
      const [result] = await ask(['EVAL', script, keys.length, ...keys, ...values])
      if (typeof result !== 'number') throw new Unavailable('redis', 'malformed')
      return result
    },
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function jsonOf(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
