--- Uses a refresh token.
--
-- KEYS: family, cutoff of its session, feed, cutoffs that apply. ARGV: hash of the presented token,
-- hash of its successor, nonce, now and grace period in ms, iat, start of the session, the cutoff's
-- second and its life in seconds, its name as a fact, and `undo`.
--
-- `undo`: instead, undoes a use that replicas do not have, and whose successor no retry has got.
--
-- Times are stored in the form that the caller sent, because Lua would round them.

--@include family.lua

local family = redis.call('HMGET', KEYS[1],
  'current', 'previous', 'nonce', 'rotated_ms', 'issued_at', 'ended', 'shared')
if not family[1] then return {'unknown'} end
if family[6] then return {'ended'} end
if ARGV[11] then
  if family[1] == ARGV[2] and family[2] == ARGV[1] and family[3] == ARGV[3] and not family[7] then
    redis.call('HSET', KEYS[1], 'current', ARGV[1])
    redis.call('HDEL', KEYS[1], 'previous', 'nonce', 'rotated_ms', 'issued_at')
  end
  return {'ended'}
end
local first = ARGV[1] == family[1]
local retry = not first and ARGV[1] == family[2]
  and tonumber(ARGV[4]) - tonumber(family[4]) <= tonumber(ARGV[5])
if not (first or retry) then
  end_family(ARGV[8], ARGV[9], ARGV[10])
  return {'reused'}
end
for index = 4, #KEYS do
  local cutoff = redis.call('GET', KEYS[index])
  if cutoff then
    if not string.match(cutoff, '^%d+$') then return redis.error_reply('ERR not a cut-off') end
    if tonumber(cutoff) >= tonumber(ARGV[7]) then return {'cut_off'} end
  end
end
if retry then
  redis.call('HSET', KEYS[1], 'shared', '1')
  return {'replayed', family[3], family[5]}
end
redis.call('HDEL', KEYS[1], 'shared')
redis.call('HSET', KEYS[1], 'current', ARGV[2], 'previous', ARGV[1], 'nonce', ARGV[3],
  'rotated_ms', ARGV[4], 'issued_at', ARGV[6])
return {'rotated', ARGV[3], ARGV[6]}
