--- Copies facts of the control lane to another lane, unless the lane has a later copy.
--
-- KEYS: the feed, and for each fact its key, its owners and the key of its copy. ARGV: version, now in
-- seconds, life of the keys of copies; and for each fact its value (empty: it is absent), its life in
-- seconds, how far a value may be raised, and 1 if it is a text.
--
-- In the lane, the control lane is an owner of the fact, beside the writers of the lane itself. So the
-- end of the fact in the control lane leaves in force what the lane has written.

--@include shared-keys.lua

-- The life of a fact without expiry: ten years.
local LONGEST_COPY_SECONDS = 315360000 --@inline

local version, now, copy_life = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

local function copy_text(key, value, life)
  if value == '' then
    redis.call('DEL', key)
  elseif life < 0 then
    redis.call('SET', key, value)
  else
    -- Redis rounds the rest of a life: less than half a second is 0.
    redis.call('SET', key, value, 'EX', math.max(life, 1))
  end
end

local function copy_number(key, owners, value, life, lead)
  if life < 0 then life = LONGEST_COPY_SECONDS end
  local before, stored = value_of(owners, now), redis.call('GET', key)
  if stored and tonumber(stored) ~= before then
    local left = redis.call('TTL', key)
    if left < 0 then left = LONGEST_COPY_SECONDS end
    redis.call('HSET', owners, 'other', stored .. ' ' .. string.format('%d', now + left))
  end
  redis.call('HDEL', owners, 'control')
  if value ~= '' then
    local own, others = tonumber(value), value_of(owners, now)
    -- Tokens that were issued since the cutoff of another writer are newer than it.
    if others >= own and others < own + lead then own = others + 1 end
    redis.call('HSET', owners, 'control', string.format('%d %d', own, now + life))
  end
  local most, ends = value_of(owners, now)
  if most == 0 then redis.call('DEL', key) else write_value(key, owners, most, ends, now) end
end

-- Whether the lane has this value and end already: then the feed has no change.
local function is_same(n, at)
  local key, value, life = KEYS[n], ARGV[at], tonumber(ARGV[at + 1])
  if value == '' then
    return redis.call('EXISTS', key) == 0 and redis.call('HEXISTS', KEYS[n + 1], 'control') == 0
  end
  if redis.call('EXISTS', key) == 0 then return false end
  if ARGV[at + 3] == '1' then
    return redis.call('GET', key) == value and math.abs(redis.call('TTL', key) - life) <= 1
  end
  if life < 0 then life = LONGEST_COPY_SECONDS end
  local own, ends = string.match(redis.call('HGET', KEYS[n + 1], 'control') or '', '^(%d+) (%d+)$')
  if own ~= value or math.abs(tonumber(ends) - now - life) > 1 then return false end
  return tonumber(redis.call('GET', key)) == value_of(KEYS[n + 1], now)
end

local due, changed = {}, {}
for n = 2, #KEYS, 3 do
  local copied = redis.call('GET', KEYS[n + 2])
  if not copied or tonumber(copied) < version then
    if is_same(n, 4 + (n - 2) / 3 * 4) then
      redis.call('SET', KEYS[n + 2], ARGV[1], 'EX', copy_life)
    else
      due[#due + 1] = n
      changed[#changed + 1] = KEYS[n]
    end
  end
end
append_changes(KEYS[1], changed)
for _, n in ipairs(due) do
  local at = 4 + (n - 2) / 3 * 4
  local value, life, lead = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  if ARGV[at + 3] == '1' then
    copy_text(KEYS[n], value, life)
  else
    copy_number(KEYS[n], KEYS[n + 1], value, math.max(life, life < 0 and life or 1), lead)
  end
  redis.call('SET', KEYS[n + 2], ARGV[1], 'EX', copy_life)
end
return #due
