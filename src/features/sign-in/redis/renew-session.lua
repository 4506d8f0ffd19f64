--- Replaces the reference of a session by its successor. Concurrent requests with the same reference
-- get the same successor.
--
-- KEYS: the session, the record of the reference, the record of the successor.
--
-- ARGV: the hash of the reference, the hash of the successor, the nonce of the successor, the
-- successor's record and its life in seconds, the seconds for which the old reference stays valid,
-- the record of which the successor's record is a copy, and what follows the names of the fields: empty,
-- or a colon and the host.
--
-- Returns the nonce from which the successor is derived, or an empty text if there is no session, if
-- the reference was replaced more than once, or if its record has changed.

local present, before, seed = 'reference' .. ARGV[8], 'previous' .. ARGV[8], 'nonce' .. ARGV[8]
local session = redis.call('HMGET', KEYS[1], present, before, seed)
local current, previous, nonce = session[1], session[2], session[3]
if not current then return '' end
if current ~= ARGV[1] then return previous == ARGV[1] and nonce or '' end
if redis.call('GET', KEYS[2]) ~= ARGV[7] then return '' end
redis.call('SET', KEYS[3], ARGV[4], 'EX', ARGV[5])
redis.call('HSET', KEYS[1], present, ARGV[2], before, ARGV[1], seed, ARGV[3])
if redis.call('TTL', KEYS[2]) > tonumber(ARGV[6]) then redis.call('EXPIRE', KEYS[2], ARGV[6]) end
return ARGV[3]
