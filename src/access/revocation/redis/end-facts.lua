--- Ends pending facts, unless they were marked again after the version that all lanes have. Adds them to
-- the index of facts, from which a lane that lost its keys gets them again.
--
-- KEYS: the pending facts, the index. ARGV: the version, now in seconds; and for each fact its name and the
-- second in which it ends, 0 if it is absent.

local version = tonumber(ARGV[1])
for n = 3, #ARGV, 2 do
  local fact, ends = ARGV[n], ARGV[n + 1]
  local marked = redis.call('ZSCORE', KEYS[1], fact)
  if marked and tonumber(marked) <= version then redis.call('ZREM', KEYS[1], fact) end
  if ends == '0' then redis.call('ZREM', KEYS[2], fact) else redis.call('ZADD', KEYS[2], ends, fact) end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[2])
return 1
