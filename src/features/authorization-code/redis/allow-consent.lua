--- Records a consent, and a session of its client.
--
-- KEYS: the consents of the user, the sessions of the client for this user.
--
-- ARGV: the hash of the client's id, the consent, the id of the session, the second in which it ends with
-- the milliseconds of its start, the current second, the life of both keys in seconds, `1` if the user must
-- have allowed the client before, the ids of sessions that the caller has ended.
--
-- Returns 0 if the user must have allowed the client before, and has not, or has withdrawn it.

if ARGV[7] == '1' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[5])
for index = 8, #ARGV do redis.call('ZREM', KEYS[2], ARGV[index]) end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[6])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[6])
return 1
