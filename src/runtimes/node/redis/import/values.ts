/** Reads and writes whole values of any type, with plain commands that every server has. */
import type { RedisCommand, RedisConnection, RedisReply } from '../../../../redis/connection.ts'
import { malformed, readInteger, readList, readResult, readText } from '../../../../redis/reply.ts'

const TYPES = ['string', 'hash', 'zset', 'set', 'stream'] as const
type Type = (typeof TYPES)[number]
type ListType = Exclude<Type, 'string'>

export interface Stored {
  readonly type: Type
  /** The text of a string, under the empty name; else the members, with their values or scores. */
  readonly members: ReadonlyMap<string, string>
  /** When it expires, by `performance.now()`. Infinite: it has no expiry. */
  readonly endsMs: number
}

/** A value is equal to another one if they expire within this time. */
const SAME_END_MS = 1_000
/** Members of one command. */
const MEMBERS_AT_ONCE = 500
const TEXT = ''

const SCANS = { hash: 'HSCAN', zset: 'ZSCAN', set: 'SSCAN' } as const
const ADDS = { hash: 'HSET', zset: 'ZADD', set: 'SADD' } as const
const REMOVES = { hash: 'HDEL', zset: 'ZREM', set: 'SREM', stream: 'XDEL' } as const

/** Returns the values of keys. Undefined: absent, or replaced by another type meanwhile. */
export async function readValues(
  redis: RedisConnection,
  keys: readonly string[],
): Promise<readonly (Stored | undefined)[]> {
  if (keys.length === 0) return []
  const described = (
    await redis.send(
      keys.flatMap((key): RedisCommand[] => [
        ['TYPE', key],
        ['PTTL', key],
      ]),
    )
  ).map(readResult)
  const readMs = performance.now()
  const found = keys.flatMap((key, at) => {
    const type = TYPES.find((name) => name === described[2 * at])
    const life = readInteger(described[2 * at + 1])
    if (type === undefined || life === -2) return []
    return [{ at, key, type, endsMs: life === -1 ? Number.POSITIVE_INFINITY : readMs + life }]
  })
  if (found.length === 0) return keys.map(() => undefined)
  const first = await redis.send(found.map(({ key, type }) => firstRead(key, type)))
  const values: (Stored | undefined)[] = keys.map(() => undefined)
  for (const [index, { at, key, type, endsMs }] of found.entries()) {
    const members = await membersIn(redis, { key, type }, first[index])
    if (members !== undefined) values[at] = { type, members, endsMs }
  }
  return values
}

function firstRead(key: string, type: Type): RedisCommand {
  if (type === 'string') return ['GET', key]
  return readFrom(key, type, type === 'stream' ? '-' : '0')
}

const readFrom = (key: string, type: ListType, from: string): RedisCommand =>
  type === 'stream'
    ? ['XRANGE', key, from, '+', 'COUNT', MEMBERS_AT_ONCE]
    : [SCANS[type], key, from, 'COUNT', MEMBERS_AT_ONCE]

async function membersIn(
  redis: RedisConnection,
  { key, type }: { readonly key: string; readonly type: Type },
  first: RedisReply | undefined,
): Promise<ReadonlyMap<string, string> | undefined> {
  if (first?.error?.startsWith('WRONGTYPE')) return undefined
  let result = readResult(first)
  if (type === 'string') return result === null ? undefined : new Map([[TEXT, readText(result)]])
  const members = new Map<string, string>()
  for (;;) {
    const next = type === 'stream' ? addEntries(members, result) : addMembers(members, type, result)
    if (next === undefined) return members.size === 0 ? undefined : members
    const [reply] = await redis.send([readFrom(key, type, next)])
    if (reply?.error?.startsWith('WRONGTYPE')) return undefined
    result = readResult(reply)
  }
}

/** Returns where the next read begins. Undefined: everything was read. */
function addMembers(
  members: Map<string, string>,
  type: Exclude<ListType, 'stream'>,
  result: unknown,
): string | undefined {
  const [cursor, found] = readList(result, 2)
  const texts = readList(found).map(readText)
  const step = type === 'set' ? 1 : 2
  for (let at = 0; at < texts.length; at += step)
    members.set(texts[at] ?? TEXT, step === 1 ? TEXT : valueIn(type, texts[at + 1] ?? TEXT))
  const next = readText(cursor)
  return next === '0' ? undefined : next
}

/** Versions of Redis write the same score in different ways. */
const valueIn = (type: Type, text: string): string =>
  type === 'zset' && Number.isFinite(Number(text)) ? String(Number(text)) : text

function addEntries(members: Map<string, string>, result: unknown): string | undefined {
  const entries = readList(result).map((entry) => readList(entry, 2))
  for (const [id, fields] of entries)
    members.set(readText(id), JSON.stringify(readList(fields).map(readText)))
  const last = entries.at(-1)?.[0]
  return entries.length < MEMBERS_AT_ONCE ? undefined : `(${readText(last)}`
}

/** Reports whether two values have the same members, and expire at about the same time. */
export function areEqual(one: Stored, other: Stored | undefined): boolean {
  return (
    other !== undefined &&
    one.type === other.type &&
    one.members.size === other.members.size &&
    [...one.members].every(([name, value]) => other.members.get(name) === value) &&
    (one.endsMs === other.endsMs || Math.abs(one.endsMs - other.endsMs) <= SAME_END_MS)
  )
}

/** Returns the union of two values of the same type, with the longer life. `one` wins. */
export function joined(one: Stored, other: Stored | undefined): Stored {
  if (other === undefined || other.type !== one.type) return one
  return {
    type: one.type,
    members: new Map([...other.members, ...one.members]),
    endsMs: Math.max(one.endsMs, other.endsMs),
  }
}

/** Returns the commands that give `key` a value, in place of `before`. */
export function writeCommands(
  key: string,
  value: Stored,
  before: Stored | undefined,
): readonly RedisCommand[] {
  const { type, members, endsMs } = value
  // At least one millisecond: Redis refuses a life of 0.
  const life = Math.max(1, Math.ceil(endsMs - performance.now()))
  const hasEnd = Number.isFinite(endsMs)
  if (type === 'string')
    return [['SET', key, members.get(TEXT) ?? TEXT, ...(hasEnd ? ['PX', life] : [])]]
  const isSame = before?.type === type
  const old: ReadonlyMap<string, string> = isSame ? before.members : new Map()
  const changed = [...members].filter(([name, text]) => old.get(name) !== text)
  const gone = [...old.keys()].filter((name) => !members.has(name))
  return [
    ...(before !== undefined && !isSame ? [['DEL', key]] : []),
    ...inParts(gone).map((names) => [REMOVES[type], key, ...names]),
    ...addCommands(key, type, changed),
    hasEnd ? ['PEXPIRE', key, life] : ['PERSIST', key],
  ]
}

function addCommands(
  key: string,
  type: ListType,
  changed: readonly (readonly [name: string, text: string])[],
): readonly RedisCommand[] {
  if (type === 'stream') return changed.map(([id, text]) => ['XADD', key, id, ...fieldsIn(text)])
  return inParts(changed).map((part) => [
    ADDS[type],
    key,
    ...part.flatMap(([name, text]) => {
      if (type === 'hash') return [name, text]
      return type === 'zset' ? [text, name] : [name]
    }),
  ])
}

function fieldsIn(text: string): readonly string[] {
  const fields: unknown = JSON.parse(text)
  if (!Array.isArray(fields)) throw malformed()
  return fields.map(readText)
}

function inParts<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const parts: Item[][] = []
  for (let at = 0; at < items.length; at += MEMBERS_AT_ONCE)
    parts.push(items.slice(at, at + MEMBERS_AT_ONCE))
  return parts
}
