--- Stores a record, its index entries and its shared keys.
--
-- KEYS: as in `shared-keys.lua`. ARGV: id, record, value, expiry, now in seconds, and how far a value
-- may be raised above `value`.

--@include shared-keys.lua

local id, text, value, till, now, lead = unpack(ARGV)
add_owner(KEYS, id, text, tonumber(value), tonumber(till), tonumber(now), tonumber(lead))
return 1
