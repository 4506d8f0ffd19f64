/**
 * Lanes of a Redis cluster: prefixes with a hash tag. All keys of a lane are in one slot, so one
 * script can use any of them. Without a cluster, the connection itself is the only lane.
 */
import { type Lanes, type Located, type RedisConnection, sentOnce } from './connection.ts'
import { createKeys, type RedisKeys, replicationKeys } from './keys.ts'
import { malformed, readText, sendCommand } from './reply.ts'

/** Slots of every Redis cluster. */
export const SLOTS = 16_384
/** Most lanes of a cluster. */
export const MAX_LANES = 1024

/** With 1,024 lanes, the draws fail for one credential in 10^27. The note of `point` then leads to it. */
const MAX_DRAWS = 65_536

/** The tag of the control lane. It holds what belongs to no subject, such as operators' lists. */
export const CONTROL_TAG = 'c'
/** Tags are the numbers below this one in base 36: at most three characters. */
const TAGS = 36 ** 3

/** Returns the lane of a value: of a subject, or of the address of an anonymous caller. */
export function laneOf(redis: RedisConnection, value: string): RedisConnection {
  return redis.lanes?.of(value) ?? redis
}

/** Returns the lane where new credentials of a subject are stored. */
export function credentialLane(redis: RedisConnection, subject: string): RedisConnection {
  return redis.lanes?.credentialsInControl ? redis : laneOf(redis, subject)
}

/** Returns every lane that may have what belongs to a value. Earlier versions stored it in the control lane. */
export function lanesWith(redis: RedisConnection, value: string): readonly RedisConnection[] {
  return redis.lanes === undefined ? [redis] : [redis, redis.lanes.of(value)]
}

/**
 * Returns the lanes that record the single use of what has a hash. While gateways of an earlier version run, both
 * they and those without `credentialsInControl` must find it.
 */
export function lanesOfUse(redis: RedisConnection, hash: string): readonly RedisConnection[] {
  if (redis.lanes?.credentialsInControl) return [redis, redis.lanes.of(hash)]
  return [laneOf(redis, hash)]
}

/**
 * Records the single use of what has a hash, for so many seconds. Returns false if it was used before. `nameIn` returns
 * the name of its key, without the hash.
 */
export async function recordUse(
  redis: RedisConnection,
  hash: string,
  nameIn: (keys: RedisKeys) => string,
  seconds: number,
): Promise<boolean> {
  for (const lane of lanesOfUse(redis, hash)) {
    const command = ['SET', nameIn(lane.keys) + hash, '1', 'EX', seconds, 'NX']
    // Not repeated: the second call would find the use of the first.
    const reply = await sendCommand(sentOnce(lane), command)
    if (reply !== 'OK' && reply !== null) throw malformed()
    if (reply === null) return false
  }
  return true
}

/** Returns every lane. On one server this is the connection itself. */
export function allLanes(redis: RedisConnection): readonly RedisConnection[] {
  return redis.lanes?.all ?? [redis]
}

/**
 * Finds a credential by the hash of its secret. Calls `read` in each lane that may have it, until it
 * returns a value; without lanes, once. Returns the value, with its lane.
 */
export async function searchLanes<Found>(
  redis: RedisConnection,
  hash: string,
  read: (lane: RedisConnection) => Promise<Found | undefined>,
): Promise<Located<Found> | undefined> {
  if (redis.lanes !== undefined) return redis.lanes.search(redis, hash, read)
  const found = await read(redis)
  return found === undefined ? undefined : { lane: redis, found }
}

/** A connection to the control lane, which has the other lanes. */
export type ClusterConnection = RedisConnection & { readonly lanes: Lanes }

export interface LaneOptions {
  /** The beginning of all names, without a brace. */
  readonly prefix: string
  /** Number of lanes, from 1 to {@link MAX_LANES}. It must never change while the keys exist. */
  readonly count: number
  /** Returns the connection of one lane, whose keys are all in `slot`. */
  readonly connect: (keys: RedisKeys, slot: number) => RedisConnection
  /** As in `Lanes`. Default false. */
  readonly credentialsInControl?: boolean | undefined
  /** Returns the base64url SHA-256 of a text, as `sha256` does, but at once: the draws compute many. */
  readonly digest: (text: string) => string
}

/**
 * Returns the connection to the control lane, with `count` further lanes. Throws a `RangeError` for
 * a prefix with a brace, which would replace the tags, and for an invalid number of lanes.
 */
export function createLanes({
  prefix,
  count,
  connect,
  credentialsInControl = false,
  digest,
}: LaneOptions): ClusterConnection {
  if (/[{}]/.test(prefix)) throw new RangeError('lanes: the prefix of the keys contains a brace')
  const laneAt = (tag: string) => connect(createKeys(`${prefix}{${tag}}:`), tagSlot(tag))
  const all = laneTags(count).map(laneAt)
  const first = all[0]
  if (first === undefined) throw new RangeError('lanes: at least one lane is needed')
  const of = (value: string) => all[laneIndex(value, count)] ?? first
  const movedKey = (home: RedisConnection, hash: string) => replicationKeys(home.keys).moved + hash
  const lanes: Lanes = {
    all,
    of,
    credentialsInControl,
    draw(subject, create) {
      const lane = laneIndex(subject, count)
      for (let attempt = 0; ; attempt += 1) {
        const text = create(attempt)
        const isLast = credentialsInControl || attempt === MAX_DRAWS
        if (isLast || laneIndex(digest(text), count) === lane) return text
      }
    },
    async search(control, hash, read) {
      const home = of(hash)
      // A gateway of an earlier version changes the record there, and leaves the copies as they are.
      const first = credentialsInControl ? await read(control) : undefined
      if (first !== undefined) return { lane: control, found: first }
      const found = await read(home)
      if (found !== undefined) return { lane: home, found }
      const [place, inControl] = await Promise.all([
        sendCommand(home, ['GET', movedKey(home, hash)]),
        credentialsInControl ? undefined : read(control),
      ])
      if (place === null)
        return inControl === undefined ? undefined : { lane: control, found: inControl }
      const lane = /^\d+$/.test(readText(place)) ? all[Number(place)] : undefined
      if (lane === undefined) throw malformed()
      const moved = await read(lane)
      return moved === undefined ? undefined : { lane, found: moved }
    },
    async point(hash, lane, lifeSeconds) {
      const [home, place] = [of(hash), all.indexOf(lane)]
      if (home === lane || place === -1) return
      const life = lifeSeconds === undefined ? [] : ['EX', lifeSeconds]
      const reply = await sendCommand(home, ['SET', movedKey(home, hash), place, ...life])
      if (reply !== 'OK') throw malformed()
    },
  }
  return { ...laneAt(CONTROL_TAG), lanes }
}

/**
 * Returns the number of a value's lane. The value has neither an issuer nor a kind, so a client that
 * is its own subject, and a subject with tokens of two issuers, have one lane.
 *
 * FNV-1a over the UTF-16 code units, low byte first, then a mix that lets each bit change all others.
 * A stored key depends on this function: it must never change.
 */
export function laneIndex(value: string, count: number): number {
  if (count === 1) return 0
  let hash = 0x811c9dc5
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) % count
}

/**
 * Returns the tags of `count` lanes. The slots are divided evenly among the lanes; the tag of a lane
 * is the first base-36 number whose slot is nearest to the middle of the lane's share. So a cluster
 * whose masters have even ranges of slots has about as many lanes on each master.
 */
export function laneTags(count: number): readonly string[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_LANES)
    throw new RangeError(`lanes: needs an integer from 1 to ${MAX_LANES}, not ${count}`)
  const tags = new Map<number, string>()
  for (let number = 0; number < TAGS; number++) {
    const tag = number.toString(36)
    const slot = tagSlot(tag)
    if (tag !== CONTROL_TAG && !tags.has(slot)) tags.set(slot, tag)
  }
  return Array.from({ length: count }, (_, lane) => {
    const middle = Math.floor(((lane + 0.5) * SLOTS) / count)
    for (let distance = 0; distance < SLOTS; distance++) {
      const tag = tags.get(middle - distance) ?? tags.get(middle + distance)
      if (tag !== undefined) return tag
    }
    throw new RangeError('lanes: no slot has a tag')
  })
}

/** Returns the slot of all keys with a tag of ASCII characters: CRC16 of Redis, modulo the slots. */
export function tagSlot(tag: string): number {
  let crc = 0
  for (let at = 0; at < tag.length; at++) {
    crc ^= tag.charCodeAt(at) << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    crc &= 0xffff
  }
  return crc % SLOTS
}
