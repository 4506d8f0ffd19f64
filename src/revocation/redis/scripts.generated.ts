/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */

export const FEED = `
local function feed_stamp(before)
  local time, hash = redis.call('TIME'), redis.sha1hex and redis.sha1hex(before) or ''
  return time[1] .. '.' .. time[2] .. '-' .. string.sub(hash, 1, 12)
end
local function feed_head(key)
  local ok, head = pcall(redis.call, 'HGET', key, 'head')
  if ok and head and string.match(head, '^%S+ %d+ %S+$') then return head end
  local stamp = feed_stamp(table.concat(KEYS, ' ') .. table.concat(ARGV, ' '))
  head = stamp .. ' 0 ' .. stamp
  redis.call('DEL', key)
  redis.call('HSET', key, 'head', head, 'oldest', '0', '0', stamp)
  redis.call('EXPIRE', key, 86400)
  return head
end
`

export const APPEND_CHANGES = `
local function append_changes(key, changed)
  if #changed == 0 then return end
  local epoch, last, stamp = string.match(feed_head(key), '^(%S+) (%d+) (%S+)$')
  local number = tonumber(last)
  for _, name in ipairs(changed) do
    number, stamp = number + 1, feed_stamp(stamp .. name)
    redis.call('HSET', key, string.format('%.0f', number), stamp .. ' ' .. name)
  end
  local oldest = tonumber(redis.call('HGET', key, 'oldest') or '') or number
  local since = tonumber(string.match(stamp, '^%d+')) - 3600
  for _ = 1, #changed + 16 do
    local following = redis.call('HGET', key, string.format('%.0f', oldest + 1))
    if oldest >= number or number - oldest < 10000
      and tonumber(string.match(following or '0', '^%d+')) >= since then break end
    redis.call('HDEL', key, string.format('%.0f', oldest))
    oldest = oldest + 1
  end
  redis.call('HSET', key, 'head', epoch .. ' ' .. string.format('%.0f', number) .. ' ' .. stamp,
    'oldest', string.format('%.0f', oldest))
  redis.call('EXPIRE', key, 86400)
end
`

export const SHARED_KEYS = `
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
local function write_value(key, owners, value, ends, now)
  redis.call('SET', key, string.format('%d', value), 'EX', string.format('%d', ends - now))
  redis.call('EXPIRE', owners, string.format('%d', ends - now))
end
local function append_shared_keys(keys)
  local changed = {}
  for n = 5, #keys, 2 do changed[#changed + 1] = keys[n] end
  append_changes(keys[4], changed)
end
local function add_owner(keys, id, text, wanted, till, now, lead)
  append_shared_keys(keys)
  for n = 5, #keys, 2 do
    local value = wanted
    local key, owners = keys[n], keys[n + 1]
    local present_value, ends = value_of(owners, now)
    local stored = redis.call('GET', key)
    if stored and tonumber(stored) ~= present_value then
      local left = redis.call('TTL', key)
      if left < 0 then left = 315360000 end
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
  local expired = redis.call('ZRANGEBYSCORE', keys[3], '-inf', now, 'LIMIT', 0, 10)
  if #expired > 0 then
    redis.call('ZREM', keys[2], unpack(expired))
    redis.call('ZREM', keys[3], unpack(expired))
  end
end
`

export const ADD_OWNER_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, SHARED_KEYS, `
local id, text, value, till, now, lead = unpack(ARGV)
add_owner(KEYS, id, text, tonumber(value), tonumber(till), tonumber(now), tonumber(lead))
return 1
`].join('')

export const EXTEND_CUTOFF = `
local function extend_cutoff(feed, key, at, ttl_seconds)
  append_changes(feed, { key })
  local later = math.max(tonumber(redis.call('GET', key) or '0'), tonumber(at))
  local longer = math.max(redis.call('TTL', key), tonumber(ttl_seconds))
  redis.call('SET', key, string.format('%d', later), 'EX', longer)
end
`

export const LIFT_REVOKED_BEFORE_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, `
redis.call('DEL', KEYS[2])
append_changes(KEYS[1], { KEYS[2] })
return 1
`].join('')

export const READ_CHANGES_SCRIPT = /* @__PURE__ */ [FEED, `
local key, position = KEYS[1], ARGV[1]
local ok, head = pcall(feed_head, key)
if not ok then return { '', 0 } end
if head == position then return { head, 1 } end
local epoch, number, stamp = string.match(position, '^(%S+) (%d+) (%S+)$')
local present, last = string.match(head, '^(%S+) (%d+)')
local behind = epoch == present and last - number or 0
if behind < 1 or behind > 500 then return { head, 0 } end
local numbers = {}
for n = 0, behind do numbers[n + 1] = string.format('%.0f', number + n) end
local entries, reply = redis.call('HMGET', key, unpack(numbers)), { head, 1 }
if string.match(entries[1] or '', '^%S+') ~= stamp then return { head, 0 } end
for n = 1, behind do
  local name = string.match(entries[n + 1] or '', '^%S+ (.+)$')
  if not name then return { head, 0 } end
  reply[n + 2] = name
end
return reply
`].join('')

export const REMOVE_OWNER_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, SHARED_KEYS, `
local id, now = ARGV[1], tonumber(ARGV[2])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
append_shared_keys(KEYS)
for n = 5, #KEYS, 2 do
  local key, owners = KEYS[n], KEYS[n + 1]
  local before = value_of(owners, now)
  redis.call('HDEL', owners, id)
  local value, ends = value_of(owners, now)
  local stored = redis.call('GET', key)
  if stored and tonumber(stored) == before then
    if value == 0 then redis.call('DEL', key) else write_value(key, owners, value, ends, now) end
  end
end
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
return 1
`].join('')

export const REVOKE_BEFORE_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, EXTEND_CUTOFF, `
extend_cutoff(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
return 1
`].join('')

export const REVOKE_TOKEN_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, `
append_changes(KEYS[1], { KEYS[2] })
redis.call('SET', KEYS[2], '1', 'EX', ARGV[1])
return 1
`].join('')
