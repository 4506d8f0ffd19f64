--- Forgets the sessions of a client that the caller has ended, and then the consent.
--
-- KEYS: the consents of the user, the sessions of the client for this user. ARGV: the hash of the client's
-- id, the ids of the sessions.
--
-- Returns 1, or 0 if there was no consent. Returns -1 and keeps the consent if there are other sessions.

for index = 2, #ARGV do redis.call('ZREM', KEYS[2], ARGV[index]) end
if redis.call('ZCARD', KEYS[2]) > 0 then return -1 end
return redis.call('HDEL', KEYS[1], ARGV[1])
