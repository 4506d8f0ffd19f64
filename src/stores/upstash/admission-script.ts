/** The script that decides over a request in one step: what holds, and what is taken of limits. */
import { EXACT_LEASE } from './exact-lease.ts'
import { EXACT_WINDOW } from './exact-window.ts'
import { FEED_MOST, FEED_SINCE } from './revocation-feed.ts'

/** In the place of a position: the feed is not asked about. */
export const NO_FEED = '-'

/**
 * KEYS: the token's revocation (if it can be revoked), its cut-offs, the bans, the bans that only
 * would hold; then of each limit its override, and of each its window; of a proof of possession
 * the key of its use; and the feed, where it is asked about.
 *
 * ARGV: how many keys there are before the overrides, and limits; for how long the proof's use is kept,
 * in seconds (0: there is none); how many keys are a revocation, how many are that or a cut-off, how
 * many are these or a ban, when the token was issued, in seconds, and now, in milliseconds, by the clock
 * that bans are told by; the position in the feed that is known ({@link NO_FEED}: none is asked
 * about); then of each limit its units, its window in seconds, what the request costs (0: no request
 * does), 1 where it refuses if they are not there, 2 where it refuses if nobody can tell, 3: both,
 * and what {@link EXACT_LEASE} is asked (empty: nothing).
 *
 * Returns how many of the keys before the limits are there, whether the proof was used before (1),
 * of each that is there its number and its value, and of each limit its {@link EXACT_WINDOW} answer,
 * the limit being -1 where it failed, and then, where leases were asked of it, what was granted and until
 * when; nothing of limits where the request is to be refused anyway. The last is {@link FEED_SINCE}'s
 * answer, where the feed is asked about.
 *
 * The flag is Upstash's, which then locks these keys alone and not the whole database.
 *
 * In this order, each only if nothing before it refuses: revocation, cut-offs, bans; the proof is used
 * up; all limits have room, and all are taken. A key of a wrong type is an error, but of a limit.
 */
export const ADMISSION_SCRIPT = `#!lua flags=allow-key-locking
${EXACT_WINDOW}
${EXACT_LEASE}
local looked, limits = ARGV[1] + 0, ARGV[2] + 0
local reply, holds, feed, proof = { 0, 0 }, true, nil, #KEYS
if ARGV[9] ~= '${NO_FEED}' then
  ${FEED_SINCE}
  feed, proof = feed_since(KEYS[#KEYS], ARGV[9], ${FEED_MOST}), #KEYS - 1
end

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
if holds and ARGV[3] ~= '0' and not call('SET', KEYS[proof], '1', 'NX', 'EX', ARGV[3]) then
  reply[2], holds = 1, false
end
if not holds then
  reply[#reply + 1] = feed
  return reply
end

local windows = {}
for n = 1, limits do
  local at, override = 5 + 5 * n, false
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
    if ARGV[9 + 5 * n] ~= '' then reply[at + 4], reply[at + 5] = 0, 0 end
  end
end
reply[#reply + 1] = feed
return reply
`
