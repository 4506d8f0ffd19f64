--- Stores an authorization code and its expiry in one step.
--
-- KEYS: code. ARGV: the record, life in seconds, the cutoffs of the browser session, `1` if the
-- authorization request does not name the redirect URI (otherwise empty).

redis.call('HSET', KEYS[1], 'record', ARGV[1], 'login', ARGV[3], 'implied', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
