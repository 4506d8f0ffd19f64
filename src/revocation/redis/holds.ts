/**
 * Keys with several holders, such as the cutoff of a subject that was revoked twice. If one record
 * is removed, the key must keep the value that the other holders and other writers need.
 */
import type { RecordKeys, RecordList } from '../../redis/record-list.ts'
import { MAX_ISSUED_AHEAD_SECONDS } from '../revocation.ts'
import { FEED_KEY, FEED_TELL } from './feed.ts'

/**
 * A record and the keys that it writes, which `admit` reads. The value of a key is the largest
 * value of its holders.
 */
export interface Hold {
  readonly record: RecordKeys
  readonly id: string
  /** The record as JSON text. */
  readonly json: string
  readonly keys: readonly string[]
  /** A positive integer. */
  readonly value: number
  /**
   * True if the value is a revocation cutoff. If a cutoff of the same second is already in force,
   * tokens issued since then have an `iat` of the next second. The new cutoff must cover them too,
   * so its value is raised.
   */
  readonly isRevokedBefore?: boolean
  readonly nowSeconds: number
  /** When the record and its values expire, in seconds since the epoch. */
  readonly endsAtSeconds: number
}

/** Prefix of the hash with the holders of a key: `<value> <expiry>` by record id. */
const HOLDERS_PREFIX = 'pc:holders:'

/**
 * `standing(holders, now)`: returns the largest value of the holders that have not expired, and
 * their latest expiry. It removes expired holders. `write(...)` stores the key and sets both
 * expiries.
 */
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

/** `tell_held(keys)`: adds all held keys to the feed. */
const TELL_HELD = `
local function tell_held(keys)
  local changed = {}
  for n = 5, #keys, 2 do changed[#changed + 1] = keys[n] end
  feed_tell(keys[4], changed)
end
`

/**
 * `hold(keys, id, text, value, end, now, lead)`. `keys` are record, index and ends, followed by
 * those that `withHolders` returns.
 */
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

/** KEYS: as for `hold`. ARGV: id, now in seconds. */
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

/** Writes the record, its index entries and its keys in one atomic step. */
export async function hold(list: RecordList<unknown>, order: Hold): Promise<void> {
  const {
    record,
    id,
    json,
    keys,
    value,
    isRevokedBefore = false,
    endsAtSeconds,
    nowSeconds,
  } = order
  await list.run(
    HOLD_SCRIPT,
    [record.record, record.index, record.ends, ...withHolders(keys)],
    [id, json, value, endsAtSeconds, nowSeconds, isRevokedBefore ? MAX_ISSUED_AHEAD_SECONDS : 0],
  )
}

/**
 * Removes the record, its index entries and its values in one atomic step. Returns false if the
 * record does not exist, or not any more.
 */
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

/** Returns the key of the feed, followed by each key and the key of its holders. */
export function withHolders(keys: readonly string[]): string[] {
  return [FEED_KEY, ...keys.flatMap((key) => [key, HOLDERS_PREFIX + key])]
}
