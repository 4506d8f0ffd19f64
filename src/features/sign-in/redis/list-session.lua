--- Adds a session to the sessions of its user, which another lane has: first for a minute, and for its life
-- after it is stored. So an id whose session was never stored leaves the list soon, and counts as no session.
--
-- KEYS: the sessions of the user. ARGV: as the first four of `open-session.lua`, and `1` if the session is stored.
--
-- Returns the ids of the sessions above the maximum, the oldest first. The caller ends them. Returns the id itself if
-- it has left the list meanwhile: a logout by the provider may have missed the session.

--@include session-list.lua

local OPENING_SECONDS = 60 --@inline

local list, id, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
if ARGV[5] ~= '1' then
  redis.call('ZADD', list, now + OPENING_SECONDS, id)
  if redis.call('TTL', list) < OPENING_SECONDS then redis.call('EXPIRE', list, OPENING_SECONDS) end
  return {}
end
redis.call('ZREMRANGEBYSCORE', list, '-inf', now)
if not redis.call('ZSCORE', list, id) then return {id} end
return add_to_list(list, id, now, tonumber(ARGV[3]), tonumber(ARGV[4]), now + OPENING_SECONDS)
