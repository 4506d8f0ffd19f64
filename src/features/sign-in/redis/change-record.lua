--- Replaces the record of a reference, if the session still has this reference and nothing has changed
-- the record.
--
-- KEYS: the session, the record of the reference. ARGV: the field of the reference, the hash of the
-- reference, the old record, the new record and its life in seconds.

if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if redis.call('GET', KEYS[2]) ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[5])
return 1
