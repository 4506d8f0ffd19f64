/**
 * Keys that several records hold at once, such as the cut-off of a subject that was revoked twice:
 * taking one record back must leave what the others, and whoever else wrote the key, want.
 */
import { MAX_ISSUED_AHEAD_SECONDS } from '../../oauth/grant-store.ts'
import type { RecordKeys, RecordList } from './record-list.ts'
import { FEED_KEY, FEED_TELL } from './revocation-feed.ts'

/** A key that `admit` reads; the largest of the numbers that its holders want is its value. */
export interface Hold {
  readonly record: RecordKeys
  readonly id: string
  /** The record's text. */
  readonly json: string
  readonly keys: readonly string[]
  /** A positive whole number. */
  readonly value: number
  /**
   * The value is a second that is cut off. Who was cut off in that second already has got tokens of
   * the next one since, which are meant, too.
   */
  readonly isCutOff?: boolean
  readonly nowSeconds: number
  /** When record and hold end, seconds since the epoch. */
  readonly endsAtSeconds: number
}

/** What each holder of a key wants, and until when: a hash of `<value> <end>` by id. */
const HOLDERS_PREFIX = 'pc:holders:'

/** What those who still hold a key want of it, and the last second that any of them does. */
const STANDING = `
local function standing(holders, now)
  local value, ends = 0, 0
  local all = redis.call('HGETALL', holders)
  for n = 1, #all, 2 do
    local wanted, till = string.match(all[n + 1], '^(%d+) (%d+)$')
    if tonumber(till) <= now then
      redis.call('HDEL', holders, all[n])
    else
      value = math.max(value, tonumber(wanted))
      ends = math.max(ends, tonumber(till))
    end
  end
  return value, ends
end
local function write(key, holders, value, ends, now)
  redis.call('SET', key, string.format('%d', value), 'EX', string.format('%d', ends - now))
  redis.call('EXPIRE', holders, string.format('%d', ends - now))
end
`

/** Tells the feed of all keys that are held. */
const TELL_HELD = `
local function tell_held(keys)
  local changed = {}
  for n = 5, #keys, 2 do changed[#changed + 1] = keys[n] end
  feed_tell(keys[4], changed)
end
`

/** `hold(keys, id, text, value, end, now, lead)`; keys: record, index, ends, then as `withHolders`. */
export const HOLD = `${FEED_TELL}${STANDING}${TELL_HELD}
local function hold(keys, id, text, asked, till, now, lead)
  tell_held(keys)
  for n = 5, #keys, 2 do
    local value = asked
    local key, holders = keys[n], keys[n + 1]
    local wanted, ends = standing(holders, now)
    local present = redis.call('GET', key)
    if present and tonumber(present) ~= wanted then
      -- Written by somebody who is no holder: kept as one, for as long as the key has to live.
      local left = redis.call('TTL', key)
      if left < 0 then left = 315360000 end
      redis.call('HSET', holders, 'other', present .. ' ' .. string.format('%d', now + left))
      wanted, ends = math.max(wanted, tonumber(present)), math.max(ends, now + left)
    end
    if wanted >= asked and wanted < asked + lead then value = wanted + 1 end
    redis.call('HSET', holders, id, string.format('%d %d', value, till))
    write(key, holders, math.max(wanted, value), math.max(ends, till), now)
  end
  redis.call('SET', keys[1], text, 'EX', string.format('%d', till - now))
  redis.call('ZADD', keys[2], 0, id)
  redis.call('ZADD', keys[3], till, id)
  -- Each that is written takes some that have ended with it, should nobody ever read the list.
  local ended = redis.call('ZRANGEBYSCORE', keys[3], '-inf', now, 'LIMIT', 0, 10)
  if #ended > 0 then
    redis.call('ZREM', keys[2], unpack(ended))
    redis.call('ZREM', keys[3], unpack(ended))
  end
end
`

const HOLD_SCRIPT = `${HOLD}
local id, text, value, till, now, lead = unpack(ARGV)
hold(KEYS, id, text, tonumber(value), tonumber(till), tonumber(now), tonumber(lead))
return 1
`

/** KEYS: as `hold`. ARGV: id, now. */
const RELEASE_SCRIPT = `${FEED_TELL}${STANDING}${TELL_HELD}
local id, now = ARGV[1], tonumber(ARGV[2])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
tell_held(KEYS)
for n = 5, #KEYS, 2 do
  local key, holders = KEYS[n], KEYS[n + 1]
  local before = standing(holders, now)
  redis.call('HDEL', holders, id)
  local wanted, ends = standing(holders, now)
  local present = redis.call('GET', key)
  -- Another number was written by somebody else since: it is not ours to take back.
  if present and tonumber(present) == before then
    if wanted == 0 then redis.call('DEL', key) else write(key, holders, wanted, ends, now) end
  end
end
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
return 1
`

/** Writes the record, its place in the list, and what it holds: all of it or nothing. */
export async function hold(list: RecordList<unknown>, order: Hold): Promise<void> {
  const { record, id, json, keys, value, isCutOff = false, endsAtSeconds, nowSeconds } = order
  await list.run(
    HOLD_SCRIPT,
    [record.record, record.index, record.ends, ...withHolders(keys)],
    [id, json, value, endsAtSeconds, nowSeconds, isCutOff ? MAX_ISSUED_AHEAD_SECONDS : 0],
  )
}

/** Takes all of it back. False: there is no such record (any more). */
export async function release(
  list: RecordList<unknown>,
  order: Pick<Hold, 'record' | 'id' | 'keys' | 'nowSeconds'>,
): Promise<boolean> {
  const { record, id, keys, nowSeconds } = order
  const done = await list.run(
    RELEASE_SCRIPT,
    [record.record, record.index, record.ends, ...withHolders(keys)],
    [id, nowSeconds],
  )
  return done === 1
}

/** The feed, and then each key, and behind it the one that holds its holders. */
export function withHolders(keys: readonly string[]): string[] {
  return [FEED_KEY, ...keys.flatMap((key) => [key, HOLDERS_PREFIX + key])]
}
