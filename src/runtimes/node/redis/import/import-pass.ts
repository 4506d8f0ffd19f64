/** One pass of an import: makes the keys of a cluster equal to those of one server. */
import { writeFacts } from '../../../../access/revocation/redis/facts.ts'
import { acknowledged } from '../../../../redis/acknowledged.ts'
import type { RedisCommand, RedisConnection } from '../../../../redis/connection.ts'
import { clusterKeys } from '../../../../redis/keys.ts'
import { readList, readResult, readText, sendCommand } from '../../../../redis/reply.ts'
import { type Kind, kindOf } from './kinds.ts'
import { apiKeyOf, type Cluster, type ImportedKey, placesOf, placesOfGone } from './places.ts'
import { type FoundKey, subjectsOfApiKeys, subjectsOfCredentials } from './subjects.ts'
import { eachNames } from './target.ts'
import { areEqual, joined, readValues, type Stored, writeCommands } from './values.ts'

export interface PassOptions {
  readonly source: RedisConnection
  readonly cluster: Cluster
  /** The gateways are stopped: also copies what changes with each request. */
  readonly isFinal: boolean
  /** Writes nothing. */
  readonly isDry: boolean
  /** Keeps what the cluster has of another origin. */
  readonly merges: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly onProgress: (pass: Pass) => void
}

export interface KindCount {
  seen: number
  /** Written, because the cluster had no value or another one. */
  copied: number
}

/** What a pass has done. */
export interface Pass {
  seen: number
  copied: number
  /** Removed from the cluster, because the source does not have them any more. */
  removed: number
  /** Keys that only the last pass copies. */
  left: number
  /** Keys that no pass copies. */
  skipped: number
  /** Keys of no known kind. They are not copied. */
  unknown: number
  readonly kinds: Map<string, KindCount>
}

interface Change {
  readonly key: ImportedKey
  readonly value: Stored
  readonly before: Stored | undefined
}

const KEYS_AT_ONCE = 200
/** Facts of one call; see `withBroadcast`. */
const FACTS_AT_ONCE = 100

/** Runs one pass. It can be repeated. Throws `Unavailable` if either side does not answer. */
export async function importPass(options: PassOptions): Promise<Pass> {
  const { source, onProgress } = options
  const kinds = new Map<string, KindCount>()
  const pass: Pass = { seen: 0, copied: 0, removed: 0, left: 0, skipped: 0, unknown: 0, kinds }
  if (!options.isDry) await removeGone(options, pass)
  await eachNames(
    source,
    async (names) => {
      for (const part of inParts(names, KEYS_AT_ONCE)) await copyKeys(options, pass, part)
      onProgress(pass)
      return true
    },
    KEYS_AT_ONCE,
  )
  return pass
}

async function copyKeys(options: PassOptions, pass: Pass, names: readonly string[]): Promise<void> {
  const { source, cluster, merges } = options
  const { prefix } = source.keys
  const found: { readonly name: string; readonly kind: Kind }[] = []
  for (const name of names) {
    const kind = kindOf(name)
    pass.seen += 1
    if (kind === undefined) pass.unknown += 1
    else if (isCopied(options, pass, kind)) found.push({ name, kind })
  }
  const values = await readValues(
    source,
    found.map(({ name }) => prefix + name),
  )
  const stored = found.flatMap(({ kind, name }, at): readonly FoundKey[] => {
    const value = values[at]
    return value === undefined ? [] : [{ kind, name, value }]
  })
  const apiKeys = await subjectsOfApiKeys(source, stored)
  const subjects = await subjectsOfCredentials(source, stored)
  const present = stored.flatMap(({ kind, name, value }) => {
    const keySubject = apiKeys.get(apiKeyOf(kind, name) ?? '')
    const subject = subjects.get(name)
    const key = placesOf(cluster, { kind, name, prefix, keySubject, subject })
    return key === undefined ? [] : [{ key, value }]
  })
  const before = await valuesOnCluster(present.map(({ key }) => key))
  const changes = present.flatMap(({ key, value }): readonly Change[] => {
    const old = before.get(key)
    const wanted = merges ? mergedValue(key, value, old) : value
    return areEqual(wanted, old) ? [] : [{ key, value: wanted, before: old }]
  })
  for (const { key } of changes) {
    pass.copied += 1
    const counted = pass.kinds.get(key.kind)
    if (counted !== undefined) counted.copied += 1
  }
  if (!options.isDry) await write(options, changes)
}

/** Counts a key, and reports whether this pass copies it. */
function isCopied({ isFinal }: PassOptions, pass: Pass, { name, rule }: Kind): boolean {
  const counted = pass.kinds.get(name) ?? { seen: 0, copied: 0 }
  counted.seen += 1
  pass.kinds.set(name, counted)
  if ('skip' in rule) {
    pass.skipped += 1
    return false
  }
  if (rule.at !== 'end' || isFinal) return true
  pass.left += 1
  return false
}

/** Returns what the first copy of each key has on the cluster. */
async function valuesOnCluster(
  keys: readonly ImportedKey[],
): Promise<ReadonlyMap<ImportedKey, Stored | undefined>> {
  const values = new Map<ImportedKey, Stored | undefined>()
  const byLane = new Map<RedisConnection, { readonly key: ImportedKey; readonly name: string }[]>()
  for (const key of keys) {
    const [first] = key.copies
    if (first !== undefined) add(byLane, first.lane, { key, name: first.key })
  }
  await Promise.all(
    [...byLane].map(async ([lane, of]) => {
      const read = await readValues(
        lane,
        of.map(({ name }) => name),
      )
      for (const [at, { key }] of of.entries()) values.set(key, read[at])
    }),
  )
  return values
}

/** Returns the value for a cluster that has one of another origin. A revocation never ends earlier. */
function mergedValue({ to }: ImportedKey, value: Stored, old: Stored | undefined): Stored {
  if (value.type !== 'string') return joined(value, old)
  if (to !== 'fact' || old?.type !== 'string') return value
  const [text = '', other = ''] = [value, old].map(({ members }) => members.get(''))
  const isLater = Number(other) > Number(text)
  return joined(isLater ? old : value, isLater ? value : old)
}

async function write(
  { cluster, now, merges }: PassOptions,
  changes: readonly Change[],
): Promise<void> {
  if (changes.length === 0) return
  // Before the keys: a key that is not in the set would stay after its end at the source.
  const lasting = changes
    .filter(({ key, before }) => !isAtEnd(key) && !(merges && before !== undefined))
    .map(({ key }) => key.name)
  if (lasting.length > 0)
    await sendCommand(cluster, ['SADD', clusterKeys(cluster.keys).imported, ...lasting])
  const facts = changes.filter(({ key }) => key.to === 'fact')
  for (const part of inParts(facts, FACTS_AT_ONCE)) {
    const commands = part.flatMap(({ key, value, before }) =>
      writeCommands(cluster.keys.prefix + key.name, value, before),
    )
    await writeFacts(cluster, part.map(factOf(cluster)), now, (control) => send(control, commands))
  }
  const others = changes.filter(({ key }) => key.to !== 'fact')
  await writeNotes(others)
  // The first copy is compared by the next pass, so it is written last.
  await writeCopies(others, (copies) => copies.slice(1))
  await writeCopies(others, (copies) => copies.slice(0, 1))
}

const factOf =
  ({ keys }: Cluster) =>
  ({ key: { name, subject } }: { readonly key: ImportedKey }) => ({
    key: keys.prefix + name,
    subject,
  })

const isAtEnd = ({ name }: ImportedKey): boolean => {
  const rule = kindOf(name)?.rule
  return rule !== undefined && 'to' in rule && rule.at === 'end'
}

async function writeCopies(
  changes: readonly Change[],
  choose: (copies: ImportedKey['copies']) => ImportedKey['copies'],
): Promise<void> {
  const byLane = new Map<RedisConnection, RedisCommand[]>()
  for (const { key, value, before } of changes)
    for (const copy of choose(key.copies))
      add(byLane, copy.lane, ...writeCommands(copy.key, value, before))
  await Promise.all([...byLane].map(([lane, commands]) => send(acknowledged(lane), commands)))
}

/** Writes what leads to keys that are not in the lane of their hash. No later pass finds that one of them was lost. */
async function writeNotes(changes: readonly Change[]): Promise<void> {
  const byLane = new Map<RedisConnection, RedisCommand[]>()
  for (const { key, value } of changes) {
    const { note } = key
    if (note === undefined) continue
    const life = Math.max(1, Math.ceil(value.endsMs - performance.now()))
    const end = Number.isFinite(life) ? ['PX', life] : []
    add(byLane, note.lane, ['SET', note.key, note.place, ...end])
  }
  await Promise.all([...byLane].map(([lane, commands]) => send(acknowledged(lane), commands)))
}

/** Removes keys that an earlier pass has copied, and that the source does not have any more. */
async function removeGone({ source, cluster, now }: PassOptions, pass: Pass): Promise<void> {
  const { imported } = clusterKeys(cluster.keys)
  let cursor = '0'
  do {
    const [next, found] = readList(
      await sendCommand(cluster, ['SSCAN', imported, cursor, 'COUNT', KEYS_AT_ONCE]),
      2,
    )
    cursor = readText(next)
    const names = readList(found).map(readText)
    if (names.length === 0) continue
    const exists = await source.send(names.map((name) => ['EXISTS', source.keys.prefix + name]))
    const gone = names.filter((_, at) => readResult(exists[at]) === 0)
    if (gone.length === 0) continue
    const keys = gone.flatMap((name) => {
      const kind = kindOf(name)
      return kind === undefined
        ? []
        : (placesOf(cluster, { kind, name, prefix: source.keys.prefix }) ?? [])
    })
    const facts = keys.filter(({ to }) => to === 'fact')
    for (const part of inParts(facts, FACTS_AT_ONCE)) {
      const commands = part.map(({ name }) => ['DEL', cluster.keys.prefix + name])
      const written = part.map((key) => factOf(cluster)({ key }))
      pass.removed += ones(
        await writeFacts(cluster, written, now, (control) => send(control, commands)),
      )
    }
    const byLane = new Map<RedisConnection, RedisCommand[]>()
    for (const { to, copies } of keys)
      if (to !== 'fact' && to !== 'subject')
        for (const { lane, key } of copies) add(byLane, lane, ['DEL', key])
    for (const name of gone) {
      const kind = kindOf(name)
      if (kind === undefined || !('to' in kind.rule) || kind.rule.to !== 'subject') continue
      for (const { lane, key } of await placesOfGone(cluster, kind, name))
        add(byLane, lane, ['DEL', key])
    }
    for (const [lane, commands] of byLane)
      pass.removed += ones(await send(acknowledged(lane), commands))
    await sendCommand(cluster, ['SREM', imported, ...gone])
  } while (cursor !== '0')
}

const ones = (results: readonly unknown[]): number => results.filter((one) => one === 1).length

async function send(
  redis: RedisConnection,
  commands: readonly RedisCommand[],
): Promise<readonly unknown[]> {
  return (await redis.send(commands)).map(readResult)
}

function add<Key, Item>(map: Map<Key, Item[]>, key: Key, ...items: readonly Item[]): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [...items])
  else list.push(...items)
}

function inParts<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const parts: Item[][] = []
  for (let at = 0; at < items.length; at += size) parts.push(items.slice(at, at + size))
  return parts
}
