/** The script that decides over a request in one step: what holds, and what is taken of limits. */
import { EXACT_WINDOW } from './exact-window.ts'

/**
 * KEYS: the token's revocation (if it can be revoked), its cut-offs, the bans, the bans that only
 * would hold; then of each limit its window and its override; and of a proof of possession the key
 * of its use.
 *
 * ARGV: how many keys are a revocation, how many are that or a cut-off, and how many are these or
 * a ban; when the token was issued, in seconds; now, in milliseconds, by the clock that bans are told
 * by; for how long the proof's use is kept, in seconds (0: there is none); then of each limit its
 * units, its window in seconds, what the request costs, and 1 where it refuses if they are not
 * there, and 2 where it refuses if nobody can tell.
 *
 * Returns how many of the keys before the limits are there, whether the proof was used before (1),
 * of each that is there its number and its value, and of each limit its {@link EXACT_WINDOW} answer,
 * the limit being -1 where it failed; nothing of limits where the request is to be refused anyway.
 *
 * In this order, each only if nothing before it refuses: revocation, cut-offs, bans; the proof is used
 * up; all limits have room, and all are taken. A key of a wrong type is an error, but of a limit.
 */
export const ADMISSION_SCRIPT = `${EXACT_WINDOW}
local tokens, cut_offs, bans = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local issued, wall, proof = tonumber(ARGV[4]), ARGV[5] / 1000, ARGV[6] ~= '0'
local read = #KEYS - (proof and 1 or 0)
local looked = read - (#ARGV - 6) / 2
local values, broken = {}, {}
if read > 0 then
  values = redis.call('MGET', unpack(KEYS, 1, read))
  local there = redis.call('EXISTS', unpack(KEYS, 1, read))
  for n = 1, read do
    if values[n] then there = there - 1 end
  end
  -- What is there and was not read is of a wrong type.
  for n = 1, there > 0 and read or 0 do
    broken[n] = not values[n] and redis.call('EXISTS', KEYS[n]) == 1
    if broken[n] and n <= looked then return redis.error_reply('ERR a key of a wrong type') end
  end
end

local reply, holds = { 0, 0 }, true
for n = 1, looked do
  local value = values[n]
  if value then
    reply[1] = reply[1] + 1
    reply[#reply + 1] = n
    reply[#reply + 1] = value
    local number = tonumber(value) or math.huge
    if n <= tokens or (n <= cut_offs and issued <= number) or (n > cut_offs and n <= bans and number > wall) then
      holds = false
    end
  end
end
if holds and proof and not redis.call('SET', KEYS[#KEYS], '1', 'NX', 'EX', ARGV[6]) then
  reply[2], holds = 1, false
end
if not holds then return reply end

local windows = {}
for n = 7, #ARGV, 4 do
  local key, force = looked + (n - 5) / 2, tonumber(ARGV[n + 3])
  local known, found = false, nil
  if not broken[key] and not broken[key + 1] then
    known, found = pcall(look, values[key], values[key + 1], tonumber(ARGV[n]), tonumber(ARGV[n + 1]), tonumber(ARGV[n + 2]))
  end
  windows[#windows + 1] = known and found or false
  if known and not found.fits and force % 2 == 1 or not known and force >= 2 then holds = false end
end
for n, found in ipairs(windows) do
  local limit, left, wait = -1, 0, 0
  if found then
    if found.fits and holds then take(found) end
    keep(KEYS[looked + 2 * n - 1], found)
    limit, left, wait = answer(found)
  end
  reply[#reply + 1] = limit
  reply[#reply + 1] = left
  reply[#reply + 1] = wait
end
return reply
`
