--- Ends pending facts that all their lanes have. Adds them to the index of facts, from which a lane that lost its
-- keys gets them again.
--
-- KEYS: the pending facts, the index. ARGV: now in seconds; and for each fact its mark, its name and the second
-- in which it ends, 0 if it is absent.

for n = 2, #ARGV, 3 do
  local mark, fact, ends = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  redis.call('ZREM', KEYS[1], mark)
  if ends == '0' then redis.call('ZREM', KEYS[2], fact) else redis.call('ZADD', KEYS[2], ends, fact) end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
return 1
