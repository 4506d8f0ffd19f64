--- Stores the refreshed tokens of a session that has not ended.
--
-- KEYS: the session, the reservation of its refresh. ARGV: the tokens, the seconds until the next
-- refresh.

if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'tokens', ARGV[1]) end
redis.call('SET', KEYS[2], '1', 'EX', ARGV[2])
return 1
