--- Replaces a record only if it has not changed in the meantime. KEYS: record. ARGV: the old text, the
-- new text. Returns 0 if it has changed.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
