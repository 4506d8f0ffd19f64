--- Sets a revocation cutoff. KEYS: feed, cutoff. ARGV: the cutoff's second, its life in seconds.

--@include extend-cutoff.lua

extend_cutoff(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
return 1
