/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */
import { APPEND_CHANGES, FEED, SHARED_KEYS } from '../../revocation/redis/scripts.generated.ts'

export const COUNT_VIOLATION_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, SHARED_KEYS, `
local kind, most, window = ARGV[1], tonumber(ARGV[2]), ARGV[3] * 1000
local wall = tonumber(ARGV[6])
local function banned(ends)
  local left = ends * 1000 - wall
  return { math.ceil(left / 1000), math.min(left, 5000) }
end
local banned_until = tonumber(redis.call('GET', KEYS[7]) or 0)
if banned_until * 1000 > wall then return banned(banned_until) end
if kind == 'look' then return { 0, 0 } end
local clock = redis.call('TIME')
local at = clock[1] * 1000 + math.floor(clock[2] / 1000)
local count, began, latest = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+)$')
count, began, latest = tonumber(count or 0), tonumber(began or at), tonumber(latest or 0)
local since = at - latest
if since < 0 or since >= 5000 then since = nil end
if kind == 'limit' and since then return { 0, 5000 - since } end
if began > at or at - began >= window then count, began = 0, at end
if kind == 'limit' then latest, since = at, 0 end
count = count + 1
if count < most then
  local life = math.max(began + window - at, since and 5000 - since or 0)
  local text = string.format('%.0f %.0f %.0f', count, began, latest)
  redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', life))
  return { 0, kind == 'limit' and 5000 or 0 }
end
redis.call('DEL', KEYS[1])
local now = math.floor(wall / 1000)
local bans, first, longest = redis.call('INCR', KEYS[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
local seconds = math.min(first * 2 ^ math.min(bans - 1, 30), longest)
redis.call('EXPIRE', KEYS[2], string.format('%d', seconds + longest))
local ends = now + seconds
local text = ARGV[8] .. string.format('%d', ends) .. '}'
add_owner({ unpack(KEYS, 3) }, ARGV[7], text, ends, ends, now, 0)
return banned(ends)
`].join('')
