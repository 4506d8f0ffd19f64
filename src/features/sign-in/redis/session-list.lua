--- Adds a session to the list of its user, for `till` in seconds. Counts the sessions that end after `since`. Returns
-- the ids of those above the maximum, the oldest first. The caller ends them.
local function add_to_list(list, id, now, till, max, since)
  local rest = math.ceil(till - now)
  redis.call('ZREMRANGEBYSCORE', list, '-inf', now)
  -- The milliseconds order sessions of the same second.
  redis.call('ZADD', list, till + now % 1, id)
  if redis.call('TTL', list) < rest then redis.call('EXPIRE', list, rest) end
  local excess = redis.call('ZCOUNT', list, '(' .. since, '+inf') - max
  if excess < 1 then return {} end
  local ended = {}
  -- One more: the new session stays, even if the clock of another gateway is ahead.
  for _, oldest in ipairs(redis.call('ZRANGEBYSCORE', list, '(' .. since, '+inf', 'LIMIT', 0, excess + 1)) do
    if oldest ~= id and #ended < excess then ended[#ended + 1] = oldest end
  end
  return ended
end
