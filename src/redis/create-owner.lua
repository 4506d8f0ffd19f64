--- Stores a record that sets the value of keys, its windows. Each window has one value and one record that
-- owns it. An earlier record is deleted when other records own all of its windows.
--
-- KEYS: record, index, ends, then for each window its value and its owner. ARGV: id, record, value, life
-- in seconds (0: no expiry), end, prefix of records, prefix of owners.

--@include set-with-life.lua

local life = tonumber(ARGV[4])
local earlier = {}
for n = 4, #KEYS, 2 do
  local owner = redis.call('GET', KEYS[n + 1])
  if owner then earlier[owner] = true end
  set_with_life(KEYS[n], ARGV[3], life)
  set_with_life(KEYS[n + 1], ARGV[1], life)
end
for id in pairs(earlier) do
  local text = redis.call('GET', ARGV[6] .. id)
  local left = false
  for _, window in ipairs(text and cjson.decode(text).windows or {}) do
    if redis.call('GET', ARGV[7] .. window) == id then left = true end
  end
  if not left then
    redis.call('DEL', ARGV[6] .. id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZREM', KEYS[3], id)
  end
end
set_with_life(KEYS[1], ARGV[2], life)
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
