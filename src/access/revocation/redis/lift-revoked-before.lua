--- Removes a revocation cutoff. KEYS: feed, cutoff. The deletion is first, so that the script also
-- succeeds when Redis is out of memory.

--@include append-changes.lua

redis.call('DEL', KEYS[2])
append_changes(KEYS[1], { KEYS[2] })
return 1
