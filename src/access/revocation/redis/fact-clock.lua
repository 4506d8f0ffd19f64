--- Returns the next version of facts: the server's time in microseconds, or the last version and 1. So
-- it increases even if the clock of the server is set back.
local function next_version(key)
  local time = redis.call('TIME')
  local present = time[1] * 1000000 + time[2]
  local version = math.max(present, tonumber(redis.call('GET', key) or '0') + 1)
  redis.call('SET', key, string.format('%.0f', version))
  return string.format('%.0f', version)
end
