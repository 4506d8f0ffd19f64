--- Ends pending facts, unless they were marked again after the version that all lanes have.
--
-- KEYS: the pending facts. ARGV: the version, and the facts.

local version = tonumber(ARGV[1])
for n = 2, #ARGV do
  local marked = redis.call('ZSCORE', KEYS[1], ARGV[n])
  if marked and tonumber(marked) <= version then redis.call('ZREM', KEYS[1], ARGV[n]) end
end
return 1
