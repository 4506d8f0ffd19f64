--- Reads the changes since a position.
--
-- KEYS: the feed. ARGV: the last known position.
--
-- Returns a list. The first item is the present position, empty if the feed cannot be read. The
-- second is 1 if the known position is in the feed and at most MAX_FEED_CHANGES keys have changed since,
-- else 0. The changed keys follow. Raises no error.
--
-- It is a separate script, because Upstash locks declared keys: no other script may declare a key
-- that all callers share. It is not marked as read-only, so that a database with replicas runs it at
-- its primary.

--@include feed.lua

local MAX_FEED_CHANGES --@inline ../feed.ts

local key, position = KEYS[1], ARGV[1]
local ok, head = pcall(feed_head, key)
if not ok then return { '', 0 } end
if head == position then return { head, 1 } end
local epoch, number, stamp = string.match(position, '^(%S+) (%d+) (%S+)$')
local present, last = string.match(head, '^(%S+) (%d+)')
local behind = epoch == present and last - number or 0
if behind < 1 or behind > MAX_FEED_CHANGES then return { head, 0 } end
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
