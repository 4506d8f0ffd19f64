--- Appends audit events to the stream, all or none.
--
-- KEYS: stream. ARGV:
--
-- 1. The maximum number of entries.
-- 2. The life of the stream, in seconds.
-- 3. and following: the events.
--
-- Returns 1, or 0 if the stream would have too many entries.

if redis.call('XLEN', KEYS[1]) + #ARGV - 2 > tonumber(ARGV[1]) then return 0 end
for at = 3, #ARGV do redis.call('XADD', KEYS[1], '*', 'event', ARGV[at]) end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
