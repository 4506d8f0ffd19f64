--- Applies the effects of a security event, unless it was applied before. One step, so that an event
-- has all of its effects or none, whatever fails and however often it is sent.
--
-- KEYS: the event, the feed, and the keys of the effects. ARGV: life of the event's key and now, in
-- seconds, and then the effects with their values:
--
-- * `cutoff`: its second, its life in seconds. Key: the cutoff.
-- * `token`: life of the revocation. Key: the revocation.
-- * `ban`: second of the event, id, record, end, prefix of records. Keys: the account, the record, the
--   index, the ends of the index, the ban, its owners.
-- * `lift`: second of the event, life of the account's key, prefix of records. Keys: the account, the
--   index, the ends of the index, the ban, its owners.
--
-- Returns `applied` or `stale` for each effect. If the event was applied before, changes nothing, and
-- returns `duplicate` and what is true of each effect now: a later event may have changed the account.

--@include ../../../access/revocation/redis/extend-cutoff.lua
--@include ../../../access/revocation/redis/release-keys.lua

local feed, now = KEYS[2], tonumber(ARGV[2])
local is_repeated = redis.call('EXISTS', KEYS[1]) == 1
local key_at, value_at = 3, 3

local function take_key()
  key_at = key_at + 1
  return KEYS[key_at - 1]
end

local function take_value()
  value_at = value_at + 1
  return ARGV[value_at - 1]
end

--- Reports whether a later event has disabled or enabled the account.
local function is_stale(account, at)
  return tonumber(redis.call('HGET', account, 'at') or '0') > tonumber(at)
end

local EFFECTS = {
  cutoff = function()
    local key, at, life = take_key(), take_value(), take_value()
    if not is_repeated then extend_cutoff(feed, key, at, life) end
    return 'applied'
  end,

  token = function()
    local key, life = take_key(), take_value()
    if is_repeated then return 'applied' end
    append_changes(feed, { key })
    redis.call('SET', key, '1', 'EX', life)
    return 'applied'
  end,

  ban = function()
    local at, id, record, till = take_value(), take_value(), take_value(), take_value()
    local prefix = take_value()
    local account = take_key()
    local keys = { take_key(), take_key(), take_key(), feed, take_key(), take_key() }
    if is_stale(account, at) then return 'stale' end
    local present = redis.call('HGET', account, 'ban')
    -- Without its ban, the account was enabled in the same second.
    if is_repeated then return present and 'applied' or 'stale' end
    redis.call('HSET', account, 'at', at)
    redis.call('EXPIRE', account, till - now)
    -- An operator may have ended the ban, although its record is kept: see `keep-record.lua`.
    local in_force = present and redis.call('EXISTS', prefix .. present) == 1
      and redis.call('HEXISTS', keys[6], present) == 1
    if not in_force then
      redis.call('HSET', account, 'ban', id)
      add_owner(keys, id, record, tonumber(till), tonumber(till), now, 0)
    end
    return 'applied'
  end,

  lift = function()
    local at, life, prefix = take_value(), take_value(), take_value()
    local account = take_key()
    local index, ends, ban, owners = take_key(), take_key(), take_key(), take_key()
    if is_stale(account, at) then return 'stale' end
    if is_repeated then return 'applied' end
    local id = redis.call('HGET', account, 'ban')
    if id then remove_owner({ prefix .. id, index, ends, feed, ban, owners }, id, now, 0) end
    redis.call('HDEL', account, 'ban')
    redis.call('HSET', account, 'at', at)
    redis.call('EXPIRE', account, life)
    return 'applied'
  end,
}

local outcomes = {}
if is_repeated then outcomes[1] = 'duplicate' end
while value_at <= #ARGV do
  outcomes[#outcomes + 1] = EFFECTS[take_value()]()
end
if not is_repeated then redis.call('SET', KEYS[1], '1', 'EX', ARGV[1]) end
return outcomes
