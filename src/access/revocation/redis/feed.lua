--- The feed of changed revocations, revocation cutoffs and bans: its format and its head.
--
-- The feed is one hash, so that it exists as a whole or not at all. Its fields are:
--
-- * `head`: the epoch, the number of the last entry and the stamp of that entry. The three together
--   are a position.
-- * `oldest`: the number of the oldest entry.
-- * One field for each entry, by its number: the stamp and the key that changed. The first entry has
--   no key.
--
-- A stamp is the server's time, in seconds and microseconds, and a hash of the previous state,
-- because some servers count only milliseconds. The epoch is the first stamp.
--
-- A position is in the feed if the epoch is the same and the entry of that number has that stamp. So
-- a server that lost its last writes, and has written others since, is detected.

local FEED_TTL_SECONDS --@inline ../feed.ts

local function feed_stamp(before)
  local time, hash = redis.call('TIME'), redis.sha1hex and redis.sha1hex(before) or ''
  return time[1] .. '.' .. time[2] .. '-' .. string.sub(hash, 1, 12)
end

--- Returns the head. Starts a new feed if there is none, or if it cannot be read: isolates detect
-- the new epoch and discard their state.
local function feed_head(key)
  local ok, head = pcall(redis.call, 'HGET', key, 'head')
  if ok and head and string.match(head, '^%S+ %d+ %S+$') then return head end
  local stamp = feed_stamp(table.concat(KEYS, ' ') .. table.concat(ARGV, ' '))
  head = stamp .. ' 0 ' .. stamp
  redis.call('DEL', key)
  redis.call('HSET', key, 'head', head, 'oldest', '0', '0', stamp)
  redis.call('EXPIRE', key, FEED_TTL_SECONDS)
  return head
end
