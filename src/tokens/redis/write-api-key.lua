--- Stores an API key, or replaces one.
--
-- KEYS: record, index, ends, new reference. To replace a key, also its reference, its revocation and
-- the feed. ARGV: id, record, reference, life in seconds or 0, expiry; the token id to replace or an
-- empty string; how long the old token id stays revoked, in seconds.
--
-- Returns 0 if the record has changed in the meantime.

--@include ../../revocation/redis/append-changes.lua
--@include ../../redis/set-with-life.lua
--@include api-key.lua

local life = tonumber(ARGV[4])
if token_id_of(KEYS[1]) ~= ARGV[6] then return 0 end
if KEYS[5] then
  append_changes(KEYS[7], { KEYS[6] })
  redis.call('SET', KEYS[6], '1', 'EX', ARGV[7])
  redis.call('DEL', KEYS[5])
end
set_with_life(KEYS[4], ARGV[3], life)
set_with_life(KEYS[1], ARGV[2], life)
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
