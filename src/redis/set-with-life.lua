--- Stores a value that expires after `life` seconds; 0: it does not expire.
local function set_with_life(key, value, life)
  if life > 0 then redis.call('SET', key, value, 'EX', life) else redis.call('SET', key, value) end
end
