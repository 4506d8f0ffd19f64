--- Removes a session with its references at all hosts. The caller has revoked the session before, because
-- isolates may have cached a reference. The script builds names of keys from the session.
--
-- KEYS: the session, the sessions of the user. ARGV: the id of the session.

local REFERENCE_PREFIX --@inline ../../../redis/lua-keys.ts
local SESSION_PREFIX --@inline ../../../redis/lua-keys.ts

local prefix = string.match(KEYS[1], '^(.*)' .. SESSION_PREFIX)

local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local kind = string.match(fields[at], '^%l+')
  if kind == 'reference' or kind == 'previous' then
    redis.call('DEL', prefix .. REFERENCE_PREFIX .. fields[at + 1])
  end
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
