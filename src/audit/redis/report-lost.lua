--- Stores the event that reports lost events, and subtracts them from the count.
--
-- KEYS: count, lost event. ARGV: the number to subtract, the event that reports this number, the life
-- of both keys in seconds.
--
-- Returns 1. Returns 0, and changes nothing, if another event waits or if the count is lower by now.

local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
if left < 0 or redis.call('SCARD', KEYS[2]) > 0 then return 0 end
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
if left == 0 then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], string.format('%.0f', left), 'EX', ARGV[3]) end
return 1
