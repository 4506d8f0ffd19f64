--- Removes a record, its index entries and its values. Each shared key keeps the value that its other
-- owners need. Returns 0 if the record does not exist.
--
-- KEYS: as in `shared-keys.lua`. ARGV: id, now in seconds.

--@include shared-keys.lua

local id, now = ARGV[1], tonumber(ARGV[2])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
append_shared_keys(KEYS)
for n = 5, #KEYS, 2 do
  local key, owners = KEYS[n], KEYS[n + 1]
  local before = value_of(owners, now)
  redis.call('HDEL', owners, id)
  local value, ends = value_of(owners, now)
  local stored = redis.call('GET', key)
  -- A different value is from another writer, which has set it since. It stays.
  if stored and tonumber(stored) == before then
    if value == 0 then redis.call('DEL', key) else write_value(key, owners, value, ends, now) end
  end
end
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
return 1
