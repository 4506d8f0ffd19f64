--- Adds the reference of a host to a session that has not ended. It replaces an earlier one of this host.
-- The script builds names of keys from the session.
--
-- KEYS: the session, the record of its reference at PUBLIC_URL, the record of the new reference.
--
-- ARGV: the hash of the reference at PUBLIC_URL, its record, the host, the hash of the new reference,
-- its record and its life in seconds.
--
-- Returns 1, 0 if the session has ended or changed, or -1 if it is on too many hosts.

local REFERENCE_PREFIX --@inline ../../../redis/lua-keys.ts
local SESSION_PREFIX --@inline ../../../redis/lua-keys.ts

local prefix = string.match(KEYS[1], '^(.*)' .. SESSION_PREFIX)

local MAX_HOSTS = 20

local host = ':' .. ARGV[3]
if redis.call('HGET', KEYS[1], 'reference') ~= ARGV[1] then return 0 end
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local hosts = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 10) == 'reference:' and field ~= 'reference' .. host then hosts = hosts + 1 end
end
if hosts >= MAX_HOSTS then return -1 end
for _, hash in ipairs(redis.call('HMGET', KEYS[1], 'reference' .. host, 'previous' .. host)) do
  if hash then redis.call('DEL', prefix .. REFERENCE_PREFIX .. hash) end
end
redis.call('HDEL', KEYS[1], 'previous' .. host, 'nonce' .. host)
redis.call('SET', KEYS[3], ARGV[5], 'EX', ARGV[6])
redis.call('HSET', KEYS[1], 'reference' .. host, ARGV[4])
return 1
