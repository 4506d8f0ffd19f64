--@include shared-keys.lua

--- Removes a record, its index entries and its values. Each shared key keeps the value that its other
-- owners need. With `kept` above 0, the record and its entries stay for at most so many seconds. Returns 0
-- if the record does not exist. `keys` as in `shared-keys.lua`.
local function remove_owner(keys, id, now, kept)
  local life = math.min(redis.call('TTL', keys[1]), kept)
  -- The first write needs no memory, so that the script also succeeds when Redis is out of memory.
  if kept > 0 then
    if redis.call('EXPIRE', keys[1], math.max(life, 1)) == 0 then return 0 end
  elseif redis.call('DEL', keys[1]) == 0 then
    return 0
  end
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
  if kept > 0 then
    redis.call('ZADD', keys[3], now + math.max(life, 1), id)
    return 1
  end
  redis.call('ZREM', keys[2], id)
  redis.call('ZREM', keys[3], id)
  return 1
end
