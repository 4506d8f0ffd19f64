--- Decides about a request with known keys, and counts it, in one step.
--
-- KEYS, in this order: the token's revocation (if it can be revoked), its revocation cutoffs, the
-- bans, the bans in observe mode; the override of each limit; a second override of each limit (if there
-- are any: the smaller one applies); the window of each limit; the key of the proof of possession (if
-- there is one).
--
-- ARGV:
-- 1. Number of keys before the overrides.
-- 2. Number of limits, negative if there are second overrides.
-- 3. Number of lease requests: one for each limit, or none. -1: none, and nothing is written.
-- 4. Six numbers with spaces between them, which are parsed only if one of the first keys exists, or
--    with a proof: seconds to keep the use of the proof; the number of revocations (0 or 1); that of
--    revocations and cutoffs; that of revocations, cutoffs and bans that are enforced; when the token
--    was issued, in seconds since the epoch; the current time in milliseconds since the epoch, by the
--    clock that bans are compared with. A ` t` behind them requests the time of the take.
--
-- Four more arguments follow for each limit: those of `read_window` (the cost is 0 for a renewal). Then
-- the lease requests follow, see `read_lease` (empty: the limit has none).
--
-- Returns the number of keys before the limits that exist, and 1 if the proof was used before. The
-- position and the value of each existing key follow, then the `state_of` each limit (its first item
-- is -1 if the limit failed). With a lease request, the granted units and the end of their hold follow
-- the state. The time of the take, in microseconds of the server's clock (16 digits), is the last value
-- if it is requested. Returns nothing about limits if the request is refused before them.
--
-- Uses only declared keys, so that Upstash locks these keys and not the whole database.
--
-- The steps run in this order, each only if nothing before it refuses: revocation, cutoffs and bans;
-- mark the proof as used; check that all limits have room, and take from all. A key of the wrong type
-- raises an error, unless it belongs to a limit.

--@script
--@include lease.lua

local checked, limits = ARGV[1] + 0, ARGV[2] + 0
local windows_from, seconds_from = checked + limits, nil
if limits < 0 then
  limits = -limits
  seconds_from = checked + limits
  windows_from = seconds_from + limits
end
local leases_from = ARGV[3] ~= '0' and 4 + 4 * limits
local proof = KEYS[windows_from + limits + 1]
-- The places of the state of one limit.
local reply, holds = { 0, 0, nil, nil, nil }, true

-- Usually none of these keys exists.
local any_exists = windows_from > 0 and call('EXISTS', unpack(KEYS, 1, windows_from)) > 0
if any_exists or proof then
  local keep, tokens, cutoffs, bans, issued, wall =
    string.match(ARGV[4], '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)')
  tokens, cutoffs, bans = tokens + 0, cutoffs + 0, bans + 0
  issued, wall = issued + 0, wall / 1000
  for n = 1, any_exists and checked or 0 do
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
  if proof and holds and not call('SET', proof, '1', 'NX', 'EX', keep) then
    reply[2], holds = 1, false
  end
end
if not holds then return reply end

local windows, read_lease, grant_lease = {}, nil, nil
if leases_from and ARGV[3] == '-1' then
  local function pass() end
  leases_from, take, write_window = false, pass, pass
elseif leases_from then
  read_lease, grant_lease = lease_functions()
end
for n = 1, limits do
  local at, ok, override, found = 1 + 4 * n, true, false, nil
  local lease = leases_from and ARGV[leases_from + n] or ''
  if any_exists then ok, override = pcall(call, 'GET', KEYS[checked + n]) end
  if any_exists and seconds_from and ok then
    ok, override = pcall(function()
      return smaller(override, call('GET', KEYS[seconds_from + n]))
    end)
  end
  if ok then ok, found = pcall(read_window, KEYS[windows_from + n], override, at) end
  if ok and lease ~= '' then ok = pcall(read_lease, found, lease) end
  if not ok then found = nil end
  windows[n] = found or false
  holds = admits(found, ARGV[at + 3]) and holds
end
for n = 1, limits do
  local found, at, lent, till = windows[n], #reply, 0, 0
  if found then
    if found.fits and holds then
      take(found, found.cost, now, clock[1], clock[2])
      if found.lease then lent, till = grant_lease(found) end
    end
    if not pcall(write_window, KEYS[windows_from + n], found) then found = nil end
  end
  if found then
    reply[at + 1], reply[at + 2], reply[at + 3] = state_of(found)
    if found.lease then reply[at + 4], reply[at + 5] = lent, till end
  else
    reply[at + 1], reply[at + 2], reply[at + 3] = -1, 0, 0
    if leases_from and ARGV[leases_from + n] ~= '' then reply[at + 4], reply[at + 5] = 0, 0 end
  end
end
if sub(ARGV[4], -1) == 't' then reply[#reply + 1] = format('%s%06d', clock[1], clock[2]) end
return reply
