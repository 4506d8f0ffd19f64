--- Stores a client. KEYS: record, index. ARGV: the record, the id.

redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return 1
