--- Removes the ids of expired records. KEYS: index, ends. ARGV: now, in seconds.
--
-- One call removes at most 1,000 ids, because a list is read more often than 1,000 records expire.

local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 1000)
if #expired > 0 then
  redis.call('ZREM', KEYS[1], unpack(expired))
  redis.call('ZREM', KEYS[2], unpack(expired))
end
return #expired
