--@include append-changes.lua

--- Keys that several records write, such as the cutoff of a subject that was revoked twice. The
-- records are the owners of the key. Its value is the largest value of its owners.
--
-- A hash beside the key has `<value> <expiry>` of each owner by the record's id, and of other writers
-- as `other`.
--
-- `keys` of the functions below: the record, its index, the expiries of the index, the feed, and
-- then each shared key and the hash of its owners.

-- The life in seconds of a value without expiry that another writer has set: ten years.
local LONGEST_SECONDS = 315360000 --@inline

--- Returns the largest value of the owners that have not expired, and their latest expiry. Removes
-- expired owners.
local function value_of(owners, now)
  local value, ends = 0, 0
  local all = redis.call('HGETALL', owners)
  for n = 1, #all, 2 do
    local own, till = string.match(all[n + 1], '^(%d+) (%d+)$')
    if tonumber(till) <= now then
      redis.call('HDEL', owners, all[n])
    else
      value = math.max(value, tonumber(own))
      ends = math.max(ends, tonumber(till))
    end
  end
  return value, ends
end

--- Stores the value of a key, and the expiry of the key and of its owners.
local function write_value(key, owners, value, ends, now)
  redis.call('SET', key, string.format('%d', value), 'EX', string.format('%d', ends - now))
  redis.call('EXPIRE', owners, string.format('%d', ends - now))
end

local function append_shared_keys(keys)
  local changed = {}
  for n = 5, #keys, 2 do changed[#changed + 1] = keys[n] end
  append_changes(keys[4], changed)
end

--- Stores a record and makes it an owner of the shared keys. If a key has a value of at least
-- `wanted` and below `wanted + lead`, the record's value is raised above it.
local function add_owner(keys, id, text, wanted, till, now, lead)
  append_shared_keys(keys)
  for n = 5, #keys, 2 do
    local value = wanted
    local key, owners = keys[n], keys[n + 1]
    local present_value, ends = value_of(owners, now)
    local stored = redis.call('GET', key)
    if stored and tonumber(stored) ~= present_value then
      -- Another writer has set this value. Keep it for as long as the key would have lived.
      local left = redis.call('TTL', key)
      if left < 0 then left = LONGEST_SECONDS end
      redis.call('HSET', owners, 'other', stored .. ' ' .. string.format('%d', now + left))
      present_value = math.max(present_value, tonumber(stored))
      ends = math.max(ends, now + left)
    end
    if present_value >= wanted and present_value < wanted + lead then value = present_value + 1 end
    redis.call('HSET', owners, id, string.format('%d %d', value, till))
    write_value(key, owners, math.max(present_value, value), math.max(ends, till), now)
  end
  redis.call('SET', keys[1], text, 'EX', string.format('%d', till - now))
  redis.call('ZADD', keys[2], 0, id)
  redis.call('ZADD', keys[3], till, id)
  -- Each write removes some expired ids, in case the list is never read.
  local expired = redis.call('ZRANGEBYSCORE', keys[3], '-inf', now, 'LIMIT', 0, 10)
  if #expired > 0 then
    redis.call('ZREM', keys[2], unpack(expired))
    redis.call('ZREM', keys[3], unpack(expired))
  end
end
