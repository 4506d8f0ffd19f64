/** Exact windows, in Lua: the part that the scripts of admission share. See docs/decisions/0035. */

/** Units of a window are kept in shares of this part of its limit, at most. */
const SHARES = 16
/** And of this part of its length. */
const STEPS = 8
/** However limits and costs change, one window has no more shares, but for those it has already. */
const MAX_SHARES = 40

/**
 * A window's text is the number of its units, 10 digits, and its shares from the oldest on, 26
 * digits each: when its last unit was taken, in microseconds of the server's clock, and how many
 * they are. All units of a share count for a window's length after the last of them, so that in no
 * stretch of time of that length more than the limit is taken. Times never go down from share to
 * share, also where the clock does.
 *
 * `look(text, override, limit, seconds, cost)` tells what still counts, and whether `cost` more fit;
 * it raises an error for what it cannot read. `take(found)` adds them; `keep(key, found)` writes what
 * has changed, for as long as it counts. `answer(found)` is the limit in force, what is left (of a
 * refusal -1 less what is left), and in how many milliseconds more is free: enough for another
 * request where it would not fit now.
 */
export const EXACT_WINDOW = `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function share(shares, from)
  return tonumber(string.sub(shares, from, from + 15)), tonumber(string.sub(shares, from + 16, from + 25))
end

local function look(text, override, limit, seconds, cost)
  if override then limit = tonumber(string.match(override, '^%d+$')) end
  limit = math.min(limit, 9999999999)
  local window, taken, shares, from = seconds * 1000000, 0, '', 1
  if text then
    assert(#text % 26 == 10)
    taken, shares = tonumber(string.sub(text, 1, 10)), string.sub(text, 11)
  end
  while from < #shares do
    local time, units = share(shares, from)
    if time + window > now then break end
    taken, from = taken - units, from + 26
  end
  shares = string.sub(shares, from)
  -- Further ahead than a window only where the clock was set back. All was taken before now.
  local ahead = 0
  while #shares > 0 and share(shares, #shares - 25) > now + window do
    local _, units = share(shares, #shares - 25)
    ahead, shares = ahead + units, string.sub(shares, 1, -27)
  end
  if ahead > 0 then shares = shares .. string.format('%016.0f%010.0f', now + window, ahead) end
  local found = { limit = limit, window = window, cost = cost, taken = taken, shares = shares }
  found.fits, found.changed = taken + cost <= limit, ahead > 0
  return found
end

local function take(found)
  local shares, stamp, units = found.shares, now, found.cost
  if #shares > 0 then
    local time, before = share(shares, #shares - 25)
    stamp = math.max(now, time)
    local step, most = found.window / ${STEPS}, math.max(1, math.floor(found.limit / ${SHARES}))
    local joins = math.floor(time / step) == math.floor(stamp / step) and before + units <= most
    if joins or #shares >= ${26 * MAX_SHARES} then shares, units = string.sub(shares, 1, -27), before + units end
  end
  found.taken, found.changed = found.taken + found.cost, true
  found.shares = shares .. string.format('%016.0f%010.0f', stamp, units)
end

local function keep(key, found)
  if not found.changed then return end
  local life = share(found.shares, #found.shares - 25) + found.window - now
  redis.call('SET', key, string.format('%010.0f', found.taken) .. found.shares, 'PX', math.ceil(life / 1000) + 1)
end

local function answer(found)
  local left = math.max(0, found.limit - found.taken)
  local short, wait = math.max(1, found.taken + found.cost - found.limit), found.window
  for from = 1, #found.shares, 26 do
    local time, units = share(found.shares, from)
    short = short - units
    if short <= 0 then
      wait = time + found.window - now
      break
    end
  end
  return found.limit, found.fits and left or -1 - left, math.ceil(wait / 1000)
end
`
