--- Stores an authorization code and its expiry in one step.
--
-- KEYS: code. ARGV: the record, life in seconds, the cutoffs of the browser session.

redis.call('HSET', KEYS[1], 'record', ARGV[1], 'login', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
