--- Renews the slot of a request in flight, unless its hold has ended.
--
-- KEYS: the slots. ARGV: the member, and how long it is held from now on, in milliseconds.

if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local clock = redis.call('TIME')
local till = clock[1] * 1000000 + clock[2] + ARGV[2] * 1000
redis.call('ZADD', KEYS[1], string.format('%.0f', till), ARGV[1])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[2] + 1000))
return 1
