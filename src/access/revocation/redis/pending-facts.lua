--- Returns marks of pending facts that no writer has ended in time, the oldest first, before them those of earlier
-- versions.
--
-- KEYS: the pending facts. ARGV: their least age in seconds, how many to skip, and how many.

--@include mark-score.lua

local time = redis.call('TIME')
local before = time[1] * 1000000 + time[2] - ARGV[1] * 1000000
local skipped, left = tonumber(ARGV[2]), tonumber(ARGV[3])
local found = {}
local ranges = { { '-inf', string.format('%.0f', before) }, { mark_score(0), mark_score(before) } }
for _, range in ipairs(ranges) do
  local first, last = unpack(range)
  for _, mark in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], first, last, 'LIMIT', skipped, left)) do
    found[#found + 1] = mark
  end
  skipped = math.max(0, skipped - redis.call('ZCOUNT', KEYS[1], first, last))
  left = tonumber(ARGV[3]) - #found
end
return found
