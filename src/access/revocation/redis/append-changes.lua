--@include feed.lua

local MAX_FEED_ENTRIES --@inline ../feed.ts
local FEED_RETENTION_SECONDS --@inline ../feed.ts
-- The number of old entries that each write removes, in addition to one for each change.
local TRIMMED_AT_ONCE = 16 --@inline

--- Adds an entry to the feed for each changed key. Scripts call it before they write the keys, so an
-- entry without a change is possible, but not a change without an entry. `lift-revoked-before.lua`
-- is the exception.
local function append_changes(key, changed)
  if #changed == 0 then return end
  local epoch, last, stamp = string.match(feed_head(key), '^(%S+) (%d+) (%S+)$')
  local number = tonumber(last)
  for _, name in ipairs(changed) do
    number, stamp = number + 1, feed_stamp(stamp .. name)
    redis.call('HSET', key, string.format('%.0f', number), stamp .. ' ' .. name)
  end
  local oldest = tonumber(redis.call('HGET', key, 'oldest') or '') or number
  local since = tonumber(string.match(stamp, '^%d+')) - FEED_RETENTION_SECONDS
  for _ = 1, #changed + TRIMMED_AT_ONCE do
    -- An isolate can be at the oldest entry unless the entry after it is too old as well.
    local following = redis.call('HGET', key, string.format('%.0f', oldest + 1))
    if oldest >= number or number - oldest < MAX_FEED_ENTRIES
      and tonumber(string.match(following or '0', '^%d+')) >= since then break end
    redis.call('HDEL', key, string.format('%.0f', oldest))
    oldest = oldest + 1
  end
  redis.call('HSET', key, 'head', epoch .. ' ' .. string.format('%.0f', number) .. ' ' .. stamp,
    'oldest', string.format('%.0f', oldest))
  redis.call('EXPIRE', key, FEED_TTL_SECONDS)
end
