--- Sets a revocation cutoff in a key, or keeps the later of two cutoffs and the longer of two lives.
-- It is one step, so that concurrent writers are safe.

--@include append-changes.lua

local function extend_cutoff(feed, key, at, ttl_seconds)
  append_changes(feed, { key })
  local later = math.max(tonumber(redis.call('GET', key) or '0'), tonumber(at))
  local longer = math.max(redis.call('TTL', key), tonumber(ttl_seconds))
  redis.call('SET', key, string.format('%d', later), 'EX', longer)
end
