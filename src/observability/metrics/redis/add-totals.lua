--- Adds the report of an isolate to the totals. A report that was applied before changes nothing.
--
-- KEYS: totals, number of the isolate's last report, isolates. ARGV:
--
-- 1. The number of this report.
-- 2. The maximum number of series, and 3. the series that counts the excess.
-- 4. The life of the totals, and 5. of the report's number, in seconds.
-- 6. The current time, and 7. the time before which isolates are removed, in milliseconds.
-- 8. The number of members for the set of isolates. The members follow.
--
-- Each series follows with the amount to add.

if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[2]) or '0') then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[5])
local members = tonumber(ARGV[8])
for at = 9, 8 + members do redis.call('ZADD', KEYS[3], ARGV[6], ARGV[at]) end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[7])
redis.call('EXPIRE', KEYS[3], ARGV[5])
local full = redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2])
for at = 9 + members, #ARGV, 2 do
  local series = ARGV[at]
  if full and redis.call('HEXISTS', KEYS[1], series) == 0 then series = ARGV[3] end
  redis.call('HINCRBY', KEYS[1], series, ARGV[at + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
