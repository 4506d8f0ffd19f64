--- Counts a failure under each key. A counter without expiry gets one, because it would otherwise stay
-- for ever.
--
-- KEYS: the counters. ARGV: the window in seconds, which starts with the first failure.
--
-- Returns the count and the remaining seconds of each counter, in one flat list.

local counts = {}
for i, key in ipairs(KEYS) do
  local count = redis.call('INCR', key)
  if count == 1 or redis.call('TTL', key) < 0 then redis.call('EXPIRE', key, ARGV[1]) end
  counts[2 * i - 1], counts[2 * i] = count, redis.call('TTL', key)
end
return counts
