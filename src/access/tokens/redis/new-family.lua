--- Stores a refresh family and its expiry in one step: a family without expiry would stay for ever.
local function store_family(key, session, current, life_ms)
  redis.call('HSET', key, 'session', session, 'current', current)
  redis.call('PEXPIRE', key, life_ms)
end
