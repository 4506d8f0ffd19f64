--- Gives units back to a quota, unless its period has ended.
--
-- KEYS: the quota. ARGV: the second in which the period of the take ends, and the units. Returns whether
-- the units were returned.

local till, taken = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
if till ~= ARGV[1] or tonumber(taken) < tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%s %.0f', till, taken - ARGV[2]), 'KEEPTTL')
return 1
