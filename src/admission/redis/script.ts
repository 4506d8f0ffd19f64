/** Script: decides about a request and counts it in one atomic step. */
import { EXACT_LEASE } from './exact-lease.ts'
import { EXACT_WINDOW } from './exact-window.ts'

/**
 * KEYS, in this order: the token's revocation (if it can be revoked), its revocation cutoffs, the
 * bans, the bans in observe mode; the override of each limit; the window of each limit; the key of
 * the proof of possession (if there is one).
 *
 * ARGV:
 * 1. Number of keys before the overrides.
 * 2. Number of limits.
 * 3. Seconds to keep the use of the proof; 0 without a proof.
 * 4. Number of revocations, 0 or 1.
 * 5. Number of revocations and cutoffs.
 * 6. Number of revocations, cutoffs and bans that are enforced.
 * 7. When the token was issued, in seconds since the epoch.
 * 8. The current time in milliseconds since the epoch, by the clock that bans are compared with.
 *
 * Five more arguments follow for each limit: its units; its window in seconds; the cost of the
 * request (0 for a renewal); when it refuses (1: if the units are used up, 2: if it cannot be
 * counted, 3: both); the query to {@link EXACT_LEASE} (empty: none).
 *
 * Returns the number of keys before the limits that exist, and 1 if the proof was used before. The
 * position and the value of each existing key follow, then the {@link EXACT_WINDOW} answer of each
 * limit (its first item is -1 if the limit failed). With a lease query, the granted units and their
 * expiry follow the answer. Returns nothing about limits if the request is refused before them.
 *
 * The script uses only declared keys, so that Upstash locks these keys and not the whole database.
 *
 * The steps run in this order, each only if nothing before it refuses: revocation, cutoffs and
 * bans; mark the proof as used; check that all limits have room, and take from all. A key of the
 * wrong type raises an error, unless it belongs to a limit.
 */
export const ADMISSION_SCRIPT = `${EXACT_WINDOW}
${EXACT_LEASE}
local looked, limits = ARGV[1] + 0, ARGV[2] + 0
local reply, holds = { 0, 0 }, true

-- As a rule nothing is there.
local there = looked + limits > 0 and call('EXISTS', unpack(KEYS, 1, looked + limits)) > 0
if there then
  local tokens, cut_offs, bans = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local issued, wall = tonumber(ARGV[7]), ARGV[8] / 1000
  for n = 1, looked do
    local value = call('GET', KEYS[n])
    if value then
      reply[1] = reply[1] + 1
      reply[#reply + 1] = n
      reply[#reply + 1] = value
      local number = tonumber(value) or math.huge
      local is_ban = n > cut_offs and n <= bans
      if n <= tokens or n <= cut_offs and issued <= number or is_ban and number > wall then
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
  local at, override = 4 + 5 * n, false
  local known, found = true, false
  if there then known, override = pcall(call, 'GET', KEYS[looked + n]) end
  if known then
    local limit, seconds, cost = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0
    known, found = pcall(look, KEYS[looked + limits + n], override, limit, seconds, cost)
  end
  if known and ARGV[at + 4] ~= '' then known = pcall(lease_of, found, ARGV[at + 4]) end
  windows[n] = known and found
  local force = ARGV[at + 3]
  if force == '3' or force == (known and '1' or '2') then
    holds = holds and known and found.fits
  end
end
for n = 1, limits do
  local found, at, lent, till = windows[n], #reply, 0, 0
  if found then
    if found.fits and holds then
      if found.cost > 0 then take(found, found.cost, now, clock[1], clock[2]) end
      if found.ahead then lent, till = lend(found) end
    end
    -- Fails where Redis is full.
    found = pcall(keep, KEYS[looked + limits + n], found) and found
  end
  if found then
    reply[at + 1], reply[at + 2], reply[at + 3] = answer(found)
    if found.ahead then reply[at + 4], reply[at + 5] = lent, till end
  else
    reply[at + 1], reply[at + 2], reply[at + 3] = -1, 0, 0
    if ARGV[8 + 5 * n] ~= '' then reply[at + 4], reply[at + 5] = 0, 0 end
  end
end
return reply
`
