--- Ends an API key.
--
-- KEYS: record, index, ends, feed, last use, then reference and revocation of each secret. ARGV: id,
-- state, how long the token ids stay revoked, in seconds.
--
-- Returns 0 if the record has changed in the meantime.

--@include ../../revocation/redis/append-changes.lua
--@include api-key.lua

if state_of(KEYS[1]) ~= ARGV[2] then return 0 end
end_secrets(KEYS[4], 6, ARGV[3])
redis.call('DEL', KEYS[1], KEYS[5])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
