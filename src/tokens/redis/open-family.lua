--- Stores a refresh family and its expiry in one step: a family without expiry would stay for ever.
--
-- KEYS: family. ARGV: session, hash of the current token, life in milliseconds.

redis.call('HSET', KEYS[1], 'session', ARGV[1], 'current', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
