/** The script that decides over a request in one step: what holds, and what is taken of limits. */
import { EXACT_WINDOW } from './exact-window.ts'

/**
 * KEYS: the token's revocation (if it can be revoked), its cut-offs, the bans, the bans that only
 * would hold; then of each limit its override, and of each its window; and of a proof of possession
 * the key of its use.
 *
 * ARGV: how many keys there are before the overrides, and limits; for how long the proof's use is kept,
 * in seconds (0: there is none); how many keys are a revocation, how many are that or a cut-off, how
 * many are these or a ban, when the token was issued, in seconds, and now, in milliseconds, by the clock
 * that bans are told by; then of each limit its units, its window in seconds, what the request costs,
 * and 1 where it refuses if they are not there, 2 where it refuses if nobody can tell, 3: both.
 *
 * Returns how many of the keys before the limits are there, whether the proof was used before (1),
 * of each that is there its number and its value, and of each limit its {@link EXACT_WINDOW} answer,
 * the limit being -1 where it failed; nothing of limits where the request is to be refused anyway.
 *
 * The flag is Upstash's, which then locks these keys alone and not the whole database.
 *
 * In this order, each only if nothing before it refuses: revocation, cut-offs, bans; the proof is used
 * up; all limits have room, and all are taken. A key of a wrong type is an error, but of a limit.
 */
export const ADMISSION_SCRIPT = `#!lua flags=allow-key-locking
${EXACT_WINDOW}
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
  local at, override = 5 + 4 * n, false
  local known, found = true, false
  if there then known, override = pcall(call, 'GET', KEYS[looked + n]) end
  if known then
    local limit, seconds, cost = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0
    known, found = pcall(look, KEYS[looked + limits + n], override, limit, seconds, cost)
  end
  windows[n] = known and found
  local force = ARGV[at + 3]
  if force == '3' or force == (known and '1' or '2') then
    holds = holds and known and found.fits
  end
end
for n = 1, limits do
  local found, at = windows[n], #reply
  if found then
    if found.fits and holds then take(found) end
    -- Fails where Redis is full.
    found = pcall(keep, KEYS[looked + limits + n], found) and found
  end
  if found then
    reply[at + 1], reply[at + 2], reply[at + 3] = answer(found)
  else
    reply[at + 1], reply[at + 2], reply[at + 3] = -1, 0, 0
  end
end
return reply
`
