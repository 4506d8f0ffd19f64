--- Metered limits: limits of plans, quotas of calendar days and months, and requests in flight. See
-- docs/decisions/0089.
--
-- A metered limit has the arguments of `window_of`, with other values:
-- 1. The units: a number, or the plans, as `plan_of` reads them.
-- 2. `day` or `month` (a quota), `slots` (requests in flight), or the seconds of an exact window.
-- 3. The cost; with `slots`, the slot's member and how long it is held, in microseconds.

local find, match = string.find, string.match
local DAY = 86400 --@inline

--- Returns the entry of a plan in a table such as `;free=100;pro=;`: its units, an empty text for no
-- limit, or nil if the table does not contain the plan.
local function entry_of(plans, plan)
  local _, last = find(plans, ';' .. plan .. '=', 1, true)
  return last and match(plans, '^%d*', last + 1)
end

local chosen = {}

--- Returns the units of the caller's plan (nil: the plan has no such limit), and the plan. The text is the source
-- and the table of plans. The source is the default plan, and then words that `plan_keys` understands.
-- The first plan that is stored, and that the table contains, applies.
local function plan_of(text)
  local at = find(text, ';', 1, true)
  local source, plans = sub(text, 1, at - 1), sub(text, at)
  local plan = chosen[source]
  if not plan then
    local words = {}
    for word in string.gmatch(source, '%S+') do words[#words + 1] = word end
    plan = table.remove(words, 1)
    for _, key in ipairs(plan_keys(words)) do
      local stored_plan = sub(key, 1, 1) == '=' and sub(key, 2) or call('GET', key)
      if stored_plan and entry_of(plans, stored_plan) then
        plan = stored_plan
        break
      end
    end
    chosen[source] = plan
  end
  local units = entry_of(plans, plan)
  return units ~= '' and units or nil, plan
end

--- Returns the second in which the present day or month ends (UTC).
local function end_of(period)
  local days = floor(clock[1] / DAY)
  if period == 'day' then return (days + 1) * DAY end
  -- The civil calendar, with years that begin in March: the leap day is the last day of its year.
  local z = days + 719468
  local of_era = z % 146097
  local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
  local month = floor((5 * of_year + 2) / 153)
  local next_first = floor((153 * month + 155) / 5)
  if month == 11 then
    -- February ends with the year.
    local next_year = year + 1
    local is_leap = next_year % 4 == 0 and (next_year % 100 ~= 0 or next_year % 400 == 0)
    next_first = is_leap and 366 or 365
  end
  return (days - of_year + next_first) * DAY
end

--- Reads a quota. Its text is the second in which its period ends, and the units that are taken. A period
-- counts until its end even if the clock is set back.
local function read_quota(key, limit, period, cost)
  local text, till, taken = call('GET', key), end_of(period), 0
  if text then
    local before, count = match(text, '^(%d+) (%d+)$')
    before = before + 0
    if before > clock[1] + 0 then till, taken = before, count + 0 end
  end
  return {
    kind = 'quota', key = key, till = till, taken = taken, cost = cost, limit = limit,
    fits = taken + cost <= limit,
  }
end

--- Reads the slots of requests in flight: a sorted set of members, scored by the end of their hold. A
-- slot that is not renewed is free after its hold.
local function read_slots(key, limit, request)
  local member, hold = match(request, '^(%S+) (%d+)$')
  local taken = call('ZCOUNT', key, format('(%.0f', now), '+inf')
  return {
    kind = 'slots', key = key, member = member, hold = hold + 0, taken = taken, limit = limit,
    fits = taken < limit,
  }
end

local NONE = { kind = 'none', fits = true }

local exact_read = read_window

local function read_meter(key, override, at)
  local units, window, cost, plan = ARGV[at], ARGV[at + 1], ARGV[at + 2], nil
  if override then
    units = match(override, '^%d+$')
  elseif find(units, ';', 1, true) then
    units, plan = plan_of(units)
    if not units then return NONE end
  end
  local found
  if window == 'slots' then
    found = read_slots(key, units + 0, cost)
  elseif window == 'day' or window == 'month' then
    found = read_quota(key, units + 0, window, cost + 0)
  else
    rawset(ARGV, at, units)
    found = exact_read(key, nil, at)
  end
  found.plan = plan
  return found
end

-- The functions of exact windows that `admit.lua` and `admit-reference.lua` call.
local exact_take, exact_state_of, exact_write = take, state_of, write_window

function read_window(key, override, at)
  if tonumber(ARGV[at]) and tonumber(ARGV[at + 1]) then return exact_read(key, override, at) end
  return read_meter(key, override, at)
end

function take(found, units, at, seconds, micros)
  if not found.kind then return exact_take(found, units, at, seconds, micros) end
  found.charged = true
  if found.kind == 'quota' then
    found.taken = found.taken + found.cost
  elseif found.kind == 'slots' then
    found.taken = found.taken + 1
  end
end

function write_window(key, found)
  if not found.kind then return exact_write(key, found) end
  if not found.charged then return end
  if found.kind == 'quota' then
    local text = format('%.0f %.0f', found.till, found.taken)
    call('SET', key, text, 'EX', format('%.0f', found.till - clock[1]))
  elseif found.kind == 'slots' then
    call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', now))
    call('ZADD', key, format('%.0f', now + found.hold), found.member)
    call('PEXPIRE', key, format('%.0f', floor(found.hold / 1000) + 1000))
  end
end

-- A limit of 0 is none. A slot may become free at any time, so a refusal has no wait.
local function metered_state_of(found)
  if not found.kind then return exact_state_of(found) end
  if found.kind == 'none' then return 0, 0, 0 end
  local left = max(0, found.limit - found.taken)
  local wait = found.kind == 'quota' and math.ceil(found.till * 1000 - now / 1000) or 0
  return found.limit, found.fits and left or -1 - left, wait
end

-- The wait of a refusal is a text that also names the plan whose units are exhausted.
function state_of(found)
  local limit, left, wait = metered_state_of(found)
  if found.plan and not found.fits then wait = format('%.0f %s', wait, found.plan) end
  return limit, left, wait
end
