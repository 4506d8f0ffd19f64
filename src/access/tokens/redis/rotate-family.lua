--- Uses a refresh token.
--
-- KEYS: family, cutoff of its session, feed, cutoffs that apply. ARGV: hash of the presented token,
-- hash of its successor, nonce, now and grace period in ms, iat, start of the session, the cutoff's
-- second and its life in seconds, its name as a fact, and `undo`.
--
-- `undo`: instead, takes back the answer to this request, which replicas do not have. When each answer with the
-- successor is taken back, no client has it, and the use is undone.
--
-- Times are stored in the form that the caller sent, because Lua would round them.

--@include family.lua

local family = redis.call('HMGET', KEYS[1],
  'current', 'previous', 'nonce', 'rotated_ms', 'issued_at', 'ended', 'answers')
if not family[1] then return {'unknown'} end
if family[6] then return {'ended'} end
-- The nonces of the requests that were answered with the successor, a line for each.
local answers, own = family[7] or '', ARGV[3] .. '\n'
if ARGV[11] then
  local at = family[2] == ARGV[1] and string.find(answers, '\n' .. own, 1, true)
  if at then
    local others = string.sub(answers, 1, at) .. string.sub(answers, at + 1 + #own)
    if others == '\n' then
      redis.call('HSET', KEYS[1], 'current', ARGV[1])
      redis.call('HDEL', KEYS[1], 'previous', 'nonce', 'rotated_ms', 'issued_at', 'answers')
    else
      redis.call('HSET', KEYS[1], 'answers', others)
    end
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
  -- A call that the connection sends twice is one answer. Of a long list, nothing takes back the rest.
  local name = #answers < 2000 and own or '*\n'
  if not string.find(answers, '\n' .. name, 1, true) then
    redis.call('HSET', KEYS[1], 'answers', answers .. name)
  end
  return {'replayed', family[3], family[5]}
end
redis.call('HSET', KEYS[1], 'current', ARGV[2], 'previous', ARGV[1], 'nonce', ARGV[3],
  'rotated_ms', ARGV[4], 'issued_at', ARGV[6], 'answers', '\n' .. own)
return {'rotated', ARGV[3], ARGV[6]}
