--- Adds one to every counter, or to none.
--
-- KEYS: the counters. ARGV: a limit and a window in seconds for each.
--
-- Returns the index of the exhausted counter that takes longest to reset, and the time until its
-- reset in milliseconds; index 0: none is exhausted. Fails if the value of a counter is not a number.

local full, longest = 0, 0
for i, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') >= tonumber(ARGV[2 * i - 1]) then
    local left = redis.call('PTTL', key)
    if full == 0 or left > longest then full, longest = i, left end
  end
end
if full > 0 then return { full, longest } end
for i, key in ipairs(KEYS) do
  if redis.call('INCR', key) == 1 then redis.call('EXPIRE', key, ARGV[2 * i]) end
end
return { 0, 0 }
