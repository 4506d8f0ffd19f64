/**
 * The feed of changed revocations, revocation cutoffs and bans in Redis. Each script that writes
 * one of them adds an entry.
 */

import { Unavailable } from '../../errors.ts'
import type { FeedCursor, FeedReply } from '../feed.ts'

/** A single hash, so that the feed exists as a whole or not at all. */
export const FEED_KEY = 'pc:revocation-feed'
/**
 * About 1.4 MB with keys of ordinary length. An isolate that is further behind must discard its
 * state.
 */
export const FEED_ENTRIES = 10_000
/** An entry older than this, in seconds, is removed. No isolate in use is this far behind. */
export const FEED_SECONDS = 3_600
/** Life of a feed without writes. After it, every isolate checks every caller once in Redis. */
const FEED_TTL_SECONDS = 86_400
/** Maximum number of changes in one reply, about 60 KB. */
export const FEED_MOST = 500
/** The number of old entries that each write removes, in addition to one for each change. */
const TRIMMED_AT_ONCE = 16

/**
 * The hash has these fields:
 *
 * - `head`: the epoch, the number of the last entry and the stamp of that entry. The three together
 *   are a position.
 * - `oldest`: the number of the oldest entry.
 * - One field for each entry, by its number: the stamp and the key that changed. The first entry
 *   has no key.
 *
 * A stamp is the server's time, in seconds and microseconds, and a hash of the previous state,
 * because some servers count only milliseconds. The epoch is the first stamp.
 *
 * A position is in the feed if the epoch is the same and the entry of that number has that stamp. A
 * server that lost its last writes, and has written others since, is therefore detected.
 */
const FEED_HEAD = `
local function feed_stamp(before)
  local time, hash = redis.call('TIME'), redis.sha1hex and redis.sha1hex(before) or ''
  return time[1] .. '.' .. time[2] .. '-' .. string.sub(hash, 1, 12)
end
local function feed_head(key)
  local known, head = pcall(redis.call, 'HGET', key, 'head')
  if known and head and string.match(head, '^%S+ %d+ %S+$') then return head end
  -- Lost, or nothing of ours: another epoch, and whoever knows something forgets it.
  local stamp = feed_stamp(table.concat(KEYS, ' ') .. table.concat(ARGV, ' '))
  head = stamp .. ' 0 ' .. stamp
  redis.call('DEL', key)
  redis.call('HSET', key, 'head', head, 'oldest', '0', '0', stamp)
  redis.call('EXPIRE', key, ${FEED_TTL_SECONDS})
  return head
end
`

/**
 * `feed_tell(key, changed)`: adds entries for the changed keys. Scripts call it before they write
 * the keys, so an entry without a change is possible, but not a change without an entry.
 * `LIFT_SCRIPT` is the exception.
 */
export const FEED_TELL = `${FEED_HEAD}
local function feed_tell(key, changed)
  if #changed == 0 then return end
  local epoch, last, stamp = string.match(feed_head(key), '^(%S+) (%d+) (%S+)$')
  local number = tonumber(last)
  for _, name in ipairs(changed) do
    number, stamp = number + 1, feed_stamp(stamp .. name)
    redis.call('HSET', key, string.format('%.0f', number), stamp .. ' ' .. name)
  end
  local oldest = tonumber(redis.call('HGET', key, 'oldest') or '') or number
  local since = tonumber(string.match(stamp, '^%d+')) - ${FEED_SECONDS}
  for _ = 1, #changed + ${TRIMMED_AT_ONCE} do
    -- Nobody is at an entry any more when the one behind it is too old.
    local behind = redis.call('HGET', key, string.format('%.0f', oldest + 1))
    if oldest >= number or number - oldest < ${FEED_ENTRIES}
      and tonumber(string.match(behind or '0', '^%d+')) >= since then break end
    redis.call('HDEL', key, string.format('%.0f', oldest))
    oldest = oldest + 1
  end
  redis.call('HSET', key, 'head', epoch .. ' ' .. string.format('%.0f', number) .. ' ' .. stamp,
    'oldest', string.format('%.0f', oldest))
  redis.call('EXPIRE', key, ${FEED_TTL_SECONDS})
end
`

/**
 * `feed_since(key, position, most)`: returns a list. The first item is the present position of the
 * feed, empty if it cannot be read. The second is 1 if `position` is in the feed and at most `most`
 * keys have changed since, else 0. The changed keys follow. It raises no error.
 */
export const FEED_SINCE = `${FEED_HEAD}
local function feed_since(key, position, most)
  local known, head = pcall(feed_head, key)
  if not known then return { '', 0 } end
  if head == position then return { head, 1 } end
  local epoch, number, stamp = string.match(position, '^(%S+) (%d+) (%S+)$')
  local present, last = string.match(head, '^(%S+) (%d+)')
  local behind = epoch == present and last - number or 0
  if behind < 1 or behind > most then return { head, 0 } end
  local numbers = {}
  for n = 0, behind do numbers[n + 1] = string.format('%.0f', number + n) end
  local entries, reply = redis.call('HMGET', key, unpack(numbers)), { head, 1 }
  if string.match(entries[1] or '', '^%S+') ~= stamp then return { head, 0 } end
  for n = 1, behind do
    local name = string.match(entries[n + 1] or '', '^%S+ (.+)$')
    if not name then return { head, 0 } end
    reply[n + 2] = name
  end
  return reply
end
`

/**
 * Reads the feed. KEYS: the feed. ARGV: the last known position. It is a separate script, because
 * Upstash locks declared keys: no other script may declare a key that all callers share. It is not
 * marked as read-only, so that a database with replicas runs it at its primary.
 */
export const FEED_SCRIPT = `${FEED_SINCE}
return feed_since(KEYS[1], ARGV[1], ${FEED_MOST})
`

/** Reads what {@link FEED_SINCE} returned. Throws `Unavailable` for anything else. */
export function feedReplyOf(reply: unknown, since: FeedCursor): FeedReply {
  if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
  const [position, isKnown, ...changed] = reply as readonly unknown[]
  if (typeof position !== 'string' || !changed.every((key) => typeof key === 'string'))
    throw new Unavailable('redis', 'malformed')
  if (isKnown === 1 && position !== '') return { since, position, changed }
  if (isKnown !== 0 || changed.length > 0) throw new Unavailable('redis', 'malformed')
  return { since, position, changed: undefined }
}
