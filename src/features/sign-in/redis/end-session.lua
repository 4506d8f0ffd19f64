--- Removes a session with its references. The caller has revoked the session before, because isolates
-- may have cached a reference. The script builds names of keys from the session.
--
-- KEYS: the session, the sessions of the user. ARGV: the id of the session.

local REFERENCE_PREFIX --@inline ../../../redis/lua-keys.ts

for _, hash in ipairs(redis.call('HMGET', KEYS[1], 'reference', 'previous')) do
  if hash then redis.call('DEL', REFERENCE_PREFIX .. hash) end
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
