--@include shared-keys.lua
--@include ../../../redis/keep-record.lua

--- Removes a record, its index entries and its values. Each shared key keeps the value that its other
-- owners need. With `kept` above 0, the record and its entries stay for at most so many seconds. Returns 0
-- if the record does not exist. `keys` as in `shared-keys.lua`.
local function remove_owner(keys, id, now, kept)
  if not keep_record(keys[1], kept) then return 0 end
  append_shared_keys(keys)
  for n = 5, #keys, 2 do
    local key, owners = keys[n], keys[n + 1]
    local before = value_of(owners, now)
    redis.call('HDEL', owners, id)
    local value, ends = value_of(owners, now)
    local stored = redis.call('GET', key)
    -- A different value is from another writer, which has set it since. It stays.
    if stored and tonumber(stored) == before then
      if value == 0 then redis.call('DEL', key) else write_value(key, owners, value, ends, now) end
    end
  end
  return keep_entry(keys, id, now, kept)
end
