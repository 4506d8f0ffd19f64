--- Ends pending facts that all their lanes have. Adds them to the index of facts, from which a lane that lost its
-- keys gets them again.
--
-- KEYS: the pending facts, the index. ARGV: now in seconds, the version that the lanes have; and for each fact its
-- mark, its name and the second in which it ends, 0 if it is absent. A mark of an earlier version is the name itself, and
-- all of its writers share it: it stays if one has written after the version.

for n = 3, #ARGV, 3 do
  local mark, fact, ends = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  local marked = mark == fact and redis.call('ZSCORE', KEYS[1], mark) or 0
  if tonumber(marked) <= tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], mark) end
  if ends == '0' then redis.call('ZREM', KEYS[2], fact) else redis.call('ZADD', KEYS[2], ends, fact) end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
return 1
