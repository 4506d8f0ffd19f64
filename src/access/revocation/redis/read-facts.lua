--- Reads facts of the control lane, to copy them.
--
-- KEYS: the clock of facts, and the facts. Returns the version of this read, and the value and the life
-- in seconds of each fact. An absent fact has an empty value.

--@include fact-clock.lua

local reply = { next_version(KEYS[1]) }
for n = 2, #KEYS do
  local value = redis.call('GET', KEYS[n])
  reply[#reply + 1] = value or ''
  reply[#reply + 1] = value and redis.call('TTL', KEYS[n]) or 0
end
return reply
