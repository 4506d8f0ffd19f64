--- Marks facts as pending, before they are written to the control lane.
--
-- KEYS: the pending facts, the clock of facts. ARGV: the facts.

--@include fact-clock.lua

local version = next_version(KEYS[2])
for _, fact in ipairs(ARGV) do redis.call('ZADD', KEYS[1], version, fact) end
return version
