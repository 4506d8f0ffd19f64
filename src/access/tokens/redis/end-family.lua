--- Ends a refresh family.
--
-- KEYS: family, cutoff of its session, feed. ARGV: the cutoff's second, its life in seconds.

--@include family.lua

end_family(ARGV[1], ARGV[2], '')
return 1
