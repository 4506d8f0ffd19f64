--- Stores an API key, or replaces one.
--
-- KEYS: record, index, ends, new reference, feed. To replace a key, also the references of the old
-- secrets that stay valid, then reference and revocation of each one that ends. ARGV: id, record,
-- reference, life in seconds or 0, when the record is deleted; the state to replace or an empty string;
-- how long an ended token id stays revoked, in seconds; the number of old secrets that stay valid; how
-- long the references of the ended ones are kept, in seconds. Then follow reference and life of each old
-- secret that stays valid, and the reference of each one that ends.
--
-- Returns 0 if the record has changed in the meantime.

--@include ../../revocation/redis/append-changes.lua
--@include ../../../redis/set-with-life.lua
--@include api-key.lua

local kept = tonumber(ARGV[8])
if state_of(KEYS[1]) ~= ARGV[6] then return 0 end
end_secrets(KEYS[5], 6 + kept, ARGV[7], 10 + 2 * kept, ARGV[9])
for at = 1, kept do
  set_with_life(KEYS[5 + at], ARGV[8 + 2 * at], tonumber(ARGV[9 + 2 * at]))
end
local life = tonumber(ARGV[4])
set_with_life(KEYS[4], ARGV[3], life)
set_with_life(KEYS[1], ARGV[2], life)
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
