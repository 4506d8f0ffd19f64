--- Revokes a token. KEYS: feed, revocation. ARGV: life of the revocation, in seconds.

--@include append-changes.lua

append_changes(KEYS[1], { KEYS[2] })
redis.call('SET', KEYS[2], '1', 'EX', ARGV[1])
return 1
