--- Removes a record. KEYS: as in `shared-keys.lua`. ARGV: id, now in seconds, how long to keep the
-- record itself in seconds, or 0. Returns 0 if the record does not exist.

--@include release-keys.lua

return remove_owner(KEYS, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
