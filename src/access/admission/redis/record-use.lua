--- Records the use of an API key, at most once a minute.
--
-- KEYS: the use of the key.

-- The last use of an API key is written again after this number of seconds.
local USE_INTERVAL = 60 --@inline
-- 400 days.
local USE_LIFE = 34560000 --@inline

local now = redis.call('TIME')[1]
if now - (redis.call('GET', KEYS[1]) or 0) >= USE_INTERVAL then
  redis.call('SET', KEYS[1], now, 'EX', USE_LIFE)
end
return 1
