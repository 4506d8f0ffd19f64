--- Returns marks of pending facts that no writer has ended in time, the oldest first.
--
-- KEYS: the pending facts. ARGV: their least age in seconds, how many to skip, and how many.

local time = redis.call('TIME')
local before = time[1] * 1000000 + time[2] - ARGV[1] * 1000000
return redis.call(
  'ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', before), 'LIMIT', ARGV[2], ARGV[3])
