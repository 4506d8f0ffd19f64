/** Exact windows, in Lua: the part that the admission scripts share. See docs/decisions/0035. */

/** A share contains at most this fraction (1/16) of the limit, and at least one unit. */
const SHARES = 16
/** A share covers at most this fraction (1/8) of the window's length. */
const STEPS = 8
/** The maximum number of shares of a window, even if limits and costs change. */
const MAX_SHARES = 40

/** Digits of the head and of one share in a window's text. */
const HEAD = 10
const SHARE = 26

/**
 * A window's text is the number of its units (10 digits), then its shares, oldest first (26 digits
 * each). A share is the time of its last unit, in microseconds of the server's clock (16 digits),
 * and its number of units (10 digits). All units of a share count for a window's length after the
 * last of them. So no period of that length takes more than the limit. Times never decrease from
 * share to share, even if the clock does.
 *
 * `look(key, override, limit, seconds, cost)` returns what still counts, and whether `cost` more
 * units fit. It raises an error for a text that it cannot read.
 * `take(found, units, at, seconds, micros)` adds units, the last of which is taken at `at`;
 * `seconds` and `micros` are the same time. `keep(key, found)` writes a changed window, with a TTL
 * for as long as it counts. `answer(found)` returns three values: the limit in force; the units
 * left (-1 minus them for a refusal); the milliseconds until more are free, enough for another
 * request if one does not fit now.
 */
export const EXACT_WINDOW = `
local call, sub, format, floor, max = redis.call, string.sub, string.format, math.floor, math.max
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
-- Of the share at a place. Arithmetic makes numbers of digits.
local function time_at(text, from) return sub(text, from, from + 15) + 0 end
local function units_at(text, from) return sub(text, from + 16, from + 25) + 0 end

local function look(key, override, limit, seconds, cost)
  local text, from, taken, oldest, ahead = call('GET', key), ${HEAD + 1}, 0, now, 0
  if override then limit = string.match(override, '^%d+$') + 0 end
  local window = seconds * 1000000
  local last = text and #text - ${SHARE - 1} or 0
  if text then
    assert(last > ${HEAD} and #text % ${SHARE} == ${HEAD})
    taken, oldest = sub(text, 1, ${HEAD}) + 0, time_at(text, from)
    while oldest + window <= now do
      taken, from = taken - units_at(text, from), from + ${SHARE}
      oldest = from <= last and time_at(text, from) or now
    end
    assert(taken >= 0)
    -- Further ahead than a window only where the clock was set back. All was taken before now.
    while from <= last and time_at(text, last) > now + window do
      ahead, last = ahead + units_at(text, last), last - ${SHARE}
    end
    if ahead > 0 then
      text = sub(text, 1, last + ${SHARE - 1}) .. format('%016.0f%010d', now + window, ahead)
      last = #text - ${SHARE - 1}
      oldest = time_at(text, from)
    end
  end
  limit = math.min(limit, 2000000000)
  return {
    text = text or '', from = from, last = last, oldest = oldest, taken = taken,
    limit = limit, window = window, cost = cost, fits = taken + cost <= limit, changed = ahead > 0,
  }
end

local function take(found, units, at, seconds, micros)
  local text, from, last = found.text, found.from, found.last
  local taken, till = found.taken + units, last + ${SHARE - 1}
  if from <= last then
    local time, before = time_at(text, last), units_at(text, last)
    if time > at then
      seconds, micros = sub(text, last, last + 9), sub(text, last + 10, last + 15)
    end
    local step, most = found.window / ${STEPS}, max(1, floor(found.limit / ${SHARES}))
    local joins = before + units <= most and floor(time / step) == floor(max(time, at) / step)
    if joins or last - from >= ${SHARE * (MAX_SHARES - 1)} then
      till, units = last - 1, before + units
    end
  end
  text = format('%010d%s%s%06d%010d', taken, sub(text, from, till), seconds, micros, units)
  found.taken, found.changed = taken, true
  found.text, found.from, found.last = text, ${HEAD + 1}, #text - ${SHARE - 1}
  if #text == ${HEAD + SHARE} then found.oldest = time_at(text, ${HEAD + 1}) end
end

local function keep(key, found)
  if not found.changed then return end
  local text = found.text
  if text == '' then return call('DEL', key) end
  if found.from > ${HEAD + 1} then text = format('%010d', found.taken) .. sub(text, found.from) end
  local life = time_at(text, #text - ${SHARE - 1}) + found.window - now
  call('SET', key, text, 'PX', floor(life / 1000) + 2)
end

local function answer(found)
  local taken, limit, from, time = found.taken, found.limit, found.from, found.oldest
  local short = taken + found.cost - limit
  -- In any share there is one.
  while short > 1 and from <= found.last do
    short = short - units_at(found.text, from)
    if short > 0 then from = from + ${SHARE} end
    time = from <= found.last and time_at(found.text, from) or now
  end
  local left = max(0, limit - taken)
  return limit, found.fits and left or -1 - left, math.ceil((time + found.window - now) / 1000)
end
`
