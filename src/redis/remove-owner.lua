--- Removes a record that sets the value of windows. Windows that another record owns are not changed.
-- Returns 0 if the record does not exist.
--
-- KEYS: as in `create-owner.lua`. ARGV: id.

if redis.call('DEL', KEYS[1]) == 0 then return 0 end
for n = 4, #KEYS, 2 do
  if redis.call('GET', KEYS[n + 1]) == ARGV[1] then redis.call('DEL', KEYS[n], KEYS[n + 1]) end
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
