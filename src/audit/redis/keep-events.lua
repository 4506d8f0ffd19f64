--- Stores a batch of audit events in the overflow.
--
-- KEYS: overflow, count, lost event, batch. ARGV:
--
-- 1. The current time in milliseconds.
-- 2. The maximum number of events.
-- 3. The life of the events, in seconds.
-- 4. The life of the batch's key, in seconds.
-- 5. The number of events that were lost before.
-- 6. and following: the events.
--
-- Adds the events that were lost, and the events that it removes, to the count. Returns the number of
-- removed events. A batch that was stored before changes nothing and gives the same result. Reads
-- the count first and writes it before the removal, so a value of a wrong type leaves the events
-- unchanged.

local before = redis.call('GET', KEYS[4])
if before then return tonumber(before) end
local lost = tonumber(redis.call('GET', KEYS[2]) or '0') + tonumber(ARGV[5])
for at = 6, #ARGV do redis.call('ZADD', KEYS[1], ARGV[1], ARGV[at]) end
local cut = math.max(0, redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2]))
if lost + cut > 0 then
  redis.call('SET', KEYS[2], string.format('%.0f', lost + cut), 'EX', ARGV[3])
end
if cut > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], 0, cut - 1) end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[3])
redis.call('SET', KEYS[4], cut, 'EX', ARGV[4])
return cut
