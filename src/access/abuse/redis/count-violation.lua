--- Counts a violation of an address or subject, and bans it after too many.
--
-- KEYS: violations; number of bans so far; record, index and ends of the list of bans; the feed; the
-- key of the ban, and its owners; the key of the ban that operators set. ARGV:
--
-- 1. The kind to count: `limit`, `event`, or `look` for nothing.
-- 2. The violations that lead to a ban.
-- 3. Their window, 4. the first ban and 5. the longest ban, in seconds.
-- 6. The current time in milliseconds, by the clock that bans are compared with.
-- 7. The id of the ban.
-- 8. The JSON text of the ban, up to its expiry.
--
-- Returns two numbers. The first is the remaining time of the ban in seconds, 0 for no ban. The second
-- is for how many milliseconds refusals by limits are not counted. While a ban is in force, nothing is
-- counted. A new ban resets the count.
--
-- The value of the count is `<violations> <start of their window> <start of the last limit violation>`.
-- Its times are in milliseconds by Redis' clock, because the clocks of isolates may differ by more
-- than the length of a violation.

--@include ../../revocation/redis/shared-keys.lua

local LIMIT_VIOLATION_MS --@inline ../violations.ts

local kind, most, window = ARGV[1], tonumber(ARGV[2]), ARGV[3] * 1000
local wall = tonumber(ARGV[6])
local function banned(ends)
  local left = ends * 1000 - wall
  return { math.ceil(left / 1000), math.min(left, LIMIT_VIOLATION_MS) }
end
local banned_until = math.max(redis.call('GET', KEYS[7]) or 0, redis.call('GET', KEYS[9]) or 0)
if banned_until * 1000 > wall then return banned(banned_until) end
if kind == 'look' then return { 0, 0 } end
local clock = redis.call('TIME')
local at = clock[1] * 1000 + math.floor(clock[2] / 1000)
local count, began, latest = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+)$')
count, began, latest = tonumber(count or 0), tonumber(began or at), tonumber(latest or 0)
local since = at - latest
-- A time in the future was written before the clock was set back.
if since < 0 or since >= LIMIT_VIOLATION_MS then since = nil end
if kind == 'limit' and since then return { 0, LIMIT_VIOLATION_MS - since } end
if began > at or at - began >= window then count, began = 0, at end
if kind == 'limit' then latest, since = at, 0 end
count = count + 1
if count < most then
  local life = math.max(began + window - at, since and LIMIT_VIOLATION_MS - since or 0)
  local text = string.format('%.0f %.0f %.0f', count, began, latest)
  redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', life))
  return { 0, kind == 'limit' and LIMIT_VIOLATION_MS or 0 }
end
redis.call('DEL', KEYS[1])
local now = math.floor(wall / 1000)
local bans, first, longest = redis.call('INCR', KEYS[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
local seconds = math.min(first * 2 ^ math.min(bans - 1, 30), longest)
redis.call('EXPIRE', KEYS[2], string.format('%d', seconds + longest))
local ends = now + seconds
local text = ARGV[8] .. string.format('%d', ends) .. '}'
add_owner({ unpack(KEYS, 3, 8) }, ARGV[7], text, ends, ends, now, 0)
return banned(ends)
