--- Stores a new session with its reference, and adds it to the sessions of its user.
--
-- KEYS: the record of the reference, the session, the sessions of the user (absent: another lane has them).
--
-- ARGV: the id of the session, the current time in seconds with milliseconds, the second in which the
-- session ends, the maximum of sessions, the record's text and its life in seconds, the hash of the
-- reference, the details of the session, its encrypted tokens (empty: none), and the place of the login
-- (empty: unknown).
--
-- Returns the ids of the sessions above the maximum, the oldest first. The caller ends them.

--@include session-list.lua

local id, now, till, max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('SET', KEYS[1], ARGV[5], 'EX', ARGV[6])
redis.call('HSET', KEYS[2], 'reference', ARGV[7], 'details', ARGV[8])
if ARGV[9] ~= '' then redis.call('HSET', KEYS[2], 'tokens', ARGV[9]) end
if ARGV[10] ~= '' then redis.call('HSET', KEYS[2], 'place', ARGV[10]) end
redis.call('EXPIRE', KEYS[2], math.ceil(till - now))
if not KEYS[3] then return {} end
return add_to_list(KEYS[3], id, now, till, max, now)
