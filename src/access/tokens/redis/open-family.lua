--- Stores a refresh family.
--
-- KEYS: family. ARGV: session, hash of the current token, life in milliseconds.

--@include new-family.lua

store_family(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return 1
