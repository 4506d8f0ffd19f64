/** The feed of changed revocations, cut-offs and bans in Redis: told by whoever writes one. */
import type { FeedCursor, FeedReply } from '../../admission/revocation-feed.ts'
import { Unavailable } from '../../errors.ts'

/** One hash, so that it is there as a whole or not at all. */
export const FEED_KEY = 'pc:revocation-feed'
/** About 1.4 MB with names of ordinary length. Who is further behind has to forget what it knows. */
export const FEED_ENTRIES = 10_000
/** No isolate that is in use is this far behind. */
export const FEED_SECONDS = 3_600
/** Of a feed that nobody writes: after it everybody asks about everybody once. */
const FEED_TTL_SECONDS = 86_400
/** Told at once: some 60 KB. */
export const FEED_MOST = 500
/** Entries that each change takes with it that are too old. */
const TRIMMED_AT_ONCE = 16

/**
 * The feed has a `head`: its epoch, the number of its last entry and that entry's stamp, which together
 * are a position; the number of its `oldest` entry; and the entries by their number: the stamp and the
 * key that changed. The first is of no key. A stamp is the server's time, in seconds and microseconds,
 * and a hash of what was before, for some servers count milliseconds. The epoch is the first stamp.
 *
 * A position is in the feed if the epoch is the same and the entry of that number has that stamp:
 * a server that lost its last writes, and has written others since, does not pass for the old one.
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
 * `feed_tell(key, changed)`: adds the names of keys. Before they are written, in the same script: then
 * there may be an entry without a change, and never a change without its entry.
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
 * `feed_since(key, position, most)`: a list of where the feed stands (empty: nobody can tell), 1 if
 * the position is in it and no more than `most` keys have changed since, else 0; and then those
 * keys. It raises no error. To be called before anything else is read.
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
