--- Decides about a request with known keys, and counts it, in one step.
--
-- KEYS, in this order: the token's revocation (if it can be revoked), its revocation cutoffs, the
-- bans, the bans in observe mode; the override of each limit; the window of each limit; the key of
-- the proof of possession (if there is one).
--
-- ARGV:
-- 1. Number of keys before the overrides.
-- 2. Number of limits.
-- 3. Seconds to keep the use of the proof; 0 without a proof.
-- 4. Number of revocations, 0 or 1.
-- 5. Number of revocations and cutoffs.
-- 6. Number of revocations, cutoffs and bans that are enforced.
-- 7. When the token was issued, in seconds since the epoch.
-- 8. The current time in milliseconds since the epoch, by the clock that bans are compared with.
--
-- Five more arguments follow for each limit: the four of `window_of` (the cost is 0 for a renewal),
-- and the request of `read_lease` (empty: none).
--
-- Returns the number of keys before the limits that exist, and 1 if the proof was used before. The
-- position and the value of each existing key follow, then the `state_of` each limit (its first item
-- is -1 if the limit failed). With a lease request, the granted units and the end of their hold follow
-- the state. Returns nothing about limits if the request is refused before them.
--
-- Uses only declared keys, so that Upstash locks these keys and not the whole database.
--
-- The steps run in this order, each only if nothing before it refuses: revocation, cutoffs and bans;
-- mark the proof as used; check that all limits have room, and take from all. A key of the wrong type
-- raises an error, unless it belongs to a limit.

--@include lease.lua

local checked, limits = ARGV[1] + 0, ARGV[2] + 0
local reply, holds = { 0, 0 }, true

-- Usually none of these keys exists.
local any_exists = checked + limits > 0 and call('EXISTS', unpack(KEYS, 1, checked + limits)) > 0
if any_exists then
  local tokens, cutoffs, bans = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local issued, wall = tonumber(ARGV[7]), ARGV[8] / 1000
  for n = 1, checked do
    local value = call('GET', KEYS[n])
    if value then
      reply[1] = reply[1] + 1
      reply[#reply + 1] = n
      reply[#reply + 1] = value
      local number = tonumber(value) or math.huge
      local is_ban = n > cutoffs and n <= bans
      if n <= tokens or n <= cutoffs and issued <= number or is_ban and number > wall then
        holds = false
      end
    end
  end
end
if holds and ARGV[3] ~= '0' and not call('SET', KEYS[#KEYS], '1', 'NX', 'EX', ARGV[3]) then
  reply[2], holds = 1, false
end
if not holds then return reply end

local windows = {}
for n = 1, limits do
  local at, ok, override, found = 4 + 5 * n, true, false, nil
  if any_exists then ok, override = pcall(call, 'GET', KEYS[checked + n]) end
  if ok then found = window_of(KEYS[checked + limits + n], override, at) end
  if found and ARGV[at + 4] ~= '' and not pcall(read_lease, found, ARGV[at + 4]) then found = nil end
  windows[n] = found or false
  holds = admits(found, ARGV[at + 3]) and holds
end
for n = 1, limits do
  local found, at, lent, till = windows[n], #reply, 0, 0
  if found then
    if found.fits and holds then
      charge(found)
      if found.lease then lent, till = grant_lease(found) end
    end
    found = stored(KEYS[checked + limits + n], found)
  end
  if found then
    reply[at + 1], reply[at + 2], reply[at + 3] = state_of(found)
    if found.lease then reply[at + 4], reply[at + 5] = lent, till end
  else
    reply[at + 1], reply[at + 2], reply[at + 3] = -1, 0, 0
    if ARGV[8 + 5 * n] ~= '' then reply[at + 4], reply[at + 5] = 0, 0 end
  end
end
return reply
