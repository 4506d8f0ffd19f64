--- Redeems an authorization code once, and opens the refresh family of its session in the same step.
-- A second use ends the session, with its family and its access tokens.
--
-- KEYS: family, cutoff of its session, feed, code, revoked browser session, cutoffs of the browser
-- session, cutoffs that apply to the session.
-- ARGV: hash of the first refresh token (empty: no family), session, life of the family in
-- milliseconds, the cutoff's second, its life in seconds, life of the used code in seconds, start of
-- the session, the name of the cutoff as a fact, the number of cutoffs of the browser session, and its
-- login in seconds.

--@include ../../../access/tokens/redis/family.lua
--@include ../../../access/tokens/redis/new-family.lua

local code = redis.call('HMGET', KEYS[4], 'record', 'used')
if not code[1] then return 'unknown' end
if code[2] then
  end_family(ARGV[4], ARGV[5], ARGV[8])
  return 'replayed'
end
if redis.call('EXISTS', KEYS[5]) == 1 then return 'cut_off' end
for index = 6, #KEYS do
  local start = index - 5 <= tonumber(ARGV[9]) and ARGV[10] or ARGV[7]
  local cutoff = redis.call('GET', KEYS[index])
  if cutoff then
    if not string.match(cutoff, '^%d+$') then return redis.error_reply('ERR not a cut-off') end
    if tonumber(cutoff) >= tonumber(start) then return 'cut_off' end
  end
end
redis.call('HSET', KEYS[4], 'used', '1')
redis.call('EXPIRE', KEYS[4], ARGV[6])
if ARGV[1] ~= '' then store_family(KEYS[1], ARGV[2], ARGV[1], ARGV[3]) end
return 'redeemed'
