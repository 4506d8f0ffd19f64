--- Removes a record that sets the value of windows. Windows that another record owns are not changed.
-- Returns 0 if the record does not exist.
--
-- KEYS: as in `create-owner.lua`. ARGV: id, now in seconds, how long to keep the record itself in seconds, or 0.

--@include keep-record.lua

if not keep_record(KEYS[1], tonumber(ARGV[3])) then return 0 end
for n = 4, #KEYS, 2 do
  if redis.call('GET', KEYS[n + 1]) == ARGV[1] then redis.call('DEL', KEYS[n], KEYS[n + 1]) end
end
return keep_entry(KEYS, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
