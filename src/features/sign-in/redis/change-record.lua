--- Replaces the record of a reference, if the session still has this reference and the record exists.
--
-- KEYS: the session, the record of the reference. ARGV: the hash of the reference, the new record.

local life = redis.call('PTTL', KEYS[2])
if redis.call('HGET', KEYS[1], 'reference') ~= ARGV[1] or life < 1 then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', life)
return 1
