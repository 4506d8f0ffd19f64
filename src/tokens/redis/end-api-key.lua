--- Ends an API key.
--
-- KEYS: record, index, ends, reference, revocation, feed. ARGV: id, token id, how long the token id
-- stays revoked, in seconds.
--
-- Returns 0 if the record has changed in the meantime.

--@include ../../revocation/redis/append-changes.lua
--@include api-key.lua

if token_id_of(KEYS[1]) ~= ARGV[2] then return 0 end
append_changes(KEYS[6], { KEYS[5] })
redis.call('SET', KEYS[5], '1', 'EX', ARGV[3])
redis.call('DEL', KEYS[4], KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
