--- Deletes a record that is removed, or lets it stay for at most `kept` seconds so that the call can be repeated. Returns
-- false if it does not exist. This write needs no memory, so that the script also succeeds when Redis is out of memory.
local function keep_record(key, kept)
  if kept == 0 then return redis.call('DEL', key) > 0 end
  local life = redis.call('TTL', key)
  if life < 0 or life > kept then life = kept end
  return redis.call('EXPIRE', key, math.max(life, 1)) > 0
end

--- Removes the entries of a record from its list, or lets them stay as long. KEYS: record, index, ends.
local function keep_entry(keys, id, now, kept)
  if kept > 0 then
    redis.call('ZADD', keys[3], now + redis.call('TTL', keys[1]), id)
  else
    redis.call('ZREM', keys[2], id)
    redis.call('ZREM', keys[3], id)
  end
  return 1
end
