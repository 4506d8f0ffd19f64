--@include ../../revocation/redis/extend-cutoff.lua
--@include ../../revocation/redis/mark-fact.lua

--- Ends the refresh family at KEYS[1]. KEYS[2] is the cutoff of its session, KEYS[3] the feed. The
-- cutoff is written first: if that fails, the family is unchanged for the next attempt. `fact` is the cutoff
-- as a fact that lanes need, empty if there are none, or if it is marked already.
local function end_family(at, ttl_seconds, fact)
  mark_fact(KEYS[3], fact)
  extend_cutoff(KEYS[3], KEYS[2], at, ttl_seconds)
  if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'ended', '1') end
end
