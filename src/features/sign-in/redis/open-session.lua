--- Stores a new session with its reference, and adds it to the sessions of its user.
--
-- KEYS: the record of the reference, the session, the sessions of the user.
--
-- ARGV: the record's text and its life in seconds, the hash of the reference, the id of the session,
-- its details, the current time in seconds with milliseconds, the second in which the session ends, the
-- maximum of sessions, its encrypted tokens (empty: none), and the place of the login (empty: unknown).
--
-- Returns the ids of the sessions above the maximum, the oldest first. The caller ends them.

local record, life, hash, id, details = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now, till, max = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local rest = math.ceil(till - now)

redis.call('SET', KEYS[1], record, 'EX', life)
redis.call('HSET', KEYS[2], 'reference', hash, 'details', details)
if ARGV[9] ~= '' then redis.call('HSET', KEYS[2], 'tokens', ARGV[9]) end
if ARGV[10] ~= '' then redis.call('HSET', KEYS[2], 'place', ARGV[10]) end
redis.call('EXPIRE', KEYS[2], rest)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
-- The milliseconds order sessions of the same second.
redis.call('ZADD', KEYS[3], till + now % 1, id)
if redis.call('TTL', KEYS[3]) < rest then redis.call('EXPIRE', KEYS[3], rest) end
local excess = redis.call('ZCARD', KEYS[3]) - max
if excess < 1 then return {} end
local ended = {}
-- One more: the new session stays, even if the clock of another gateway is ahead.
for _, oldest in ipairs(redis.call('ZRANGE', KEYS[3], 0, excess)) do
  if oldest ~= id and #ended < excess then ended[#ended + 1] = oldest end
end
return ended
