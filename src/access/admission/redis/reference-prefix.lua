local REFERENCE_PREFIX --@inline ../../../redis/lua-keys.ts

-- The prefix of all names: what precedes that of the record at KEYS[1].
local prefix = string.match(KEYS[1], '^(.*)' .. REFERENCE_PREFIX)
