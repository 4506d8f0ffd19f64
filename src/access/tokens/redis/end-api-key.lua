--- Ends an API key. Its record and its secrets stay, and say that they are revoked.
--
-- KEYS: record, index, ends, feed, then reference and revocation of each secret. ARGV: id, state, record,
-- how long the token ids stay revoked, in seconds; how long the record and the references are kept, in
-- seconds; when the record is deleted, in seconds since the epoch; then the reference of each secret.
--
-- Returns 0 if the record has changed in the meantime.

--@include ../../revocation/redis/append-changes.lua
--@include api-key.lua

if state_of(KEYS[1]) ~= ARGV[2] then return 0 end
end_secrets(KEYS[4], 5, ARGV[4], 7, ARGV[5])
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[5])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[6], ARGV[1])
return 1
