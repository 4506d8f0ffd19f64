--- Leases of exact windows, see docs/decisions/0037.

--@include exact-window.lua

-- A lease is at most this fraction (1/4) of what is left above the reserve.
local PART = 4 --@inline
-- This fraction (1/4) of a limit is never leased. So requests near the limit always call the store.
local RESERVE = 4 --@inline
-- The use of a window that has just begun is extrapolated by at most this factor.
local FORECAST = 16 --@inline

--- Returns `read_lease` and `grant_lease`. Most calls need neither, and creating a function costs time.
local function lease_functions()
  --- Subtracts returned units from the oldest shares. This never frees more than the unspent units:
  -- units that were granted later still count as long as before.
  local function give_back(found, units)
    local text, from, last = found.text, found.from, found.last
    units = math.min(units, found.taken)
    if units < 1 then return end
    found.taken = found.taken - units
    while from <= last and units_at(text, from) <= units do
      units, from = units - units_at(text, from), from + SHARE
    end
    local rest = ''
    if from <= last then
      local first = format('%010d', units_at(text, from) - units)
      rest = sub(text, from, from + 15) .. first .. sub(text, from + SHARE)
    end
    local is_empty = rest == ''
    found.text = is_empty and rest or format('%010d', found.taken) .. rest
    found.from, found.last = HEAD + 1, is_empty and 0 or #found.text - (SHARE - 1)
    found.oldest = is_empty and now or time_at(found.text, HEAD + 1)
    found.changed, found.fits = true, found.taken + found.cost <= found.limit
  end

  --- Parses a lease request and takes the returned units back. The request has the units, the number
  -- that a grant must be a multiple of, the hold in microseconds, the returned units, and the end of
  -- their hold. Returned units are ignored if their hold ended more than a window ago, because their
  -- share has left the window.
  local function read_lease(found, text)
    local units, step, hold, back, till = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    found.lease = { units = units + 0, step = step + 0, hold = hold + 0 }
    if till + found.window > now then give_back(found, back + 0) end
  end

  --- Grants units that count as taken at the end of the hold. Grants from what the window will have
  -- left at the present rate of use. The rate matters because a window that has just begun is always
  -- nearly empty. Returns the granted units and the end of their hold.
  local function grant_lease(found)
    local lease, age = found.lease, max(1, now - found.oldest)
    local expected = found.taken * max(1, math.min(FORECAST, found.window / age))
    local left = found.limit - expected - found.limit / RESERVE
    local most = math.min(lease.units, floor(left / PART))
    local units, till = floor(most / lease.step) * lease.step, now + lease.hold
    if units < 1 then return 0, 0 end
    take(found, units, till, format('%010.0f', floor(till / 1000000)), till % 1000000)
    return units, till
  end

  return read_lease, grant_lease
end
