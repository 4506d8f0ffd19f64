--- Exact windows, see docs/decisions/0035.
--
-- The text of a window is the number of its units (10 digits), then its shares, oldest first (26
-- digits each). A share is the time of its last unit, in microseconds of the server's clock (16
-- digits), and its number of units (10 digits). All units of a share count for a window's length
-- after the last of them. So no period of that length takes more than the limit. Times never decrease
-- from share to share, even if the clock does.

-- A share contains at most this fraction (1/16) of the limit, and at least one unit.
local SHARES = 16 --@inline
-- A share covers at most this fraction (1/8) of the window's length.
local STEPS = 8 --@inline
-- The maximum number of shares of a window, even if limits and costs change.
local MAX_SHARES = 40 --@inline
-- Digits of the head and of one share in a window's text.
local HEAD = 10 --@inline
local SHARE = 26 --@inline
-- The largest limit that fits into the digits of a share.
local MAX_LIMIT = 2000000000 --@inline

local call, sub, format, floor, max = redis.call, string.sub, string.format, math.floor, math.max
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- Arithmetic converts digits to numbers.
local function time_at(text, from) return sub(text, from, from + 15) + 0 end
local function units_at(text, from) return sub(text, from + 16, from + 25) + 0 end

--- Returns the smaller of two overrides, each of which may be absent.
local function smaller(one, other)
  if not one or not other then return one or other end
  return other + 0 < one + 0 and other or one
end

--- Reads the window of the limit whose arguments begin at ARGV[at]: units, seconds, cost, and when it
-- refuses (1: if the units are used up, 2: if it cannot be counted, 3: both). Returns the units that
-- still count, and whether the cost fits. Raises an error for a text that it cannot read.
local function read_window(key, override, at)
  local text, from, taken, oldest, latest, ahead = call('GET', key), HEAD + 1, 0, now, 0, 0
  local limit, window, cost = ARGV[at] + 0, ARGV[at + 1] * 1000000, ARGV[at + 2] + 0
  if override then limit = string.match(override, '^%d+$') + 0 end
  local last = text and #text - (SHARE - 1) or 0
  if text then
    assert(last > HEAD and #text % SHARE == HEAD)
    taken, oldest = sub(text, 1, HEAD) + 0, time_at(text, from)
    while oldest + window <= now do
      taken, from = taken - units_at(text, from), from + SHARE
      oldest = from <= last and time_at(text, from) or now
    end
    assert(taken >= 0)
    -- A share is more than a window ahead only if the clock was set back. Its units were taken before.
    latest = time_at(text, last)
    while from <= last and latest > now + window do
      ahead, last = ahead + units_at(text, last), last - SHARE
      latest = last > HEAD and time_at(text, last) or 0
    end
    if ahead > 0 then
      text = sub(text, 1, last + SHARE - 1) .. format('%016.0f%010d', now + window, ahead)
      last, latest = #text - (SHARE - 1), now + window
      oldest = time_at(text, from)
    end
  end
  limit = math.min(limit, MAX_LIMIT)
  return {
    text = text or '', from = from, last = last, oldest = oldest, latest = latest, taken = taken,
    limit = limit, window = window, seconds = ARGV[at + 1], cost = cost,
    fits = taken + cost <= limit, changed = ahead > 0,
  }
end

--- Adds units, if there are any. The last of them is taken at `at`; `seconds` and `micros` are the
-- same time.
local function take(found, units, at, seconds, micros)
  if units < 1 then return end
  local text, from, last = found.text, found.from, found.last
  local taken, till = found.taken + units, last + SHARE - 1
  if from <= last then
    local time, before = found.latest, units_at(text, last)
    if time > at then
      at = time
      seconds, micros = sub(text, last, last + 9), sub(text, last + 10, last + 15)
    end
    local step, most = found.window / STEPS, max(1, floor(found.limit / SHARES))
    local joins = before + units <= most and floor(time / step) == floor(at / step)
    if joins or last - from >= SHARE * (MAX_SHARES - 1) then
      till, units = last - 1, before + units
    end
  end
  text = format('%010d%s%s%06d%010d', taken, sub(text, from, till), seconds, micros, units)
  found.taken, found.latest, found.changed = taken, at, true
  found.text, found.from, found.last = text, HEAD + 1, #text - (SHARE - 1)
  if #text == HEAD + SHARE then found.oldest = time_at(text, HEAD + 1) end
end

--- Writes a changed window. It expires when its last unit no longer counts.
local function write_window(key, found)
  if not found.changed then return end
  local text = found.text
  if text == '' then return call('DEL', key) end
  if found.from > HEAD + 1 then text = format('%010d', found.taken) .. sub(text, found.from) end
  -- Usually the last unit is taken now. Then the life is a text: formatting a number costs more.
  local life = found.latest == now and found.seconds .. '002'
    or floor((found.latest + found.window - now) / 1000) + 2
  call('SET', key, text, 'PX', life)
end

--- Returns three values: the limit in force; the units left (-1 minus them for a refusal); the
-- milliseconds until more are free, enough for another request if one does not fit now.
local function state_of(found)
  local taken, limit, from, time = found.taken, found.limit, found.from, found.oldest
  local short = taken + found.cost - limit
  -- Each share has at least one unit.
  while short > 1 and from <= found.last do
    short = short - units_at(found.text, from)
    if short > 0 then from = from + SHARE end
    time = from <= found.last and time_at(found.text, from) or now
  end
  local left = max(0, limit - taken)
  return limit, found.fits and left or -1 - left, math.ceil((time + found.window - now) / 1000)
end

--- Reports whether a limit admits the request; `found` is nil if it could not be counted.
local function admits(found, force)
  if force == '3' or force == (found and '1' or '2') then return found and found.fits or false end
  return true
end
