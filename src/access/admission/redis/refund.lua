--- Gives the units of one take back to exact windows, see docs/decisions/0118.
--
-- KEYS: the windows. ARGV: the time of the take in microseconds, then three arguments for each window:
-- its units, seconds and cost, as `read_window` expects them. Returns the number of returned units.
--
-- A unit of the take counts in a share whose time is the time of the take or later. So the units of the
-- earliest such shares are returned: the units that stay count at least as long as they must, whatever
-- was taken, leased or returned in between.

--@script
--@include exact-window.lua

local taken_at, returned = ARGV[1] + 0, 0

local function give_back(found, units)
  local text, shares, latest = found.text, {}, found.latest
  for place = found.from, found.last, SHARE do
    local time, count = time_at(text, place), units_at(text, place)
    local gone = time >= taken_at and math.min(units, count) or 0
    units, count = units - gone, count - gone
    found.taken, returned = found.taken - gone, returned + gone
    if gone > 0 then found.changed = true end
    if count > 0 then
      shares[#shares + 1] = sub(text, place, place + 15) .. format('%010d', count)
      latest = time
    end
  end
  found.text = #shares == 0 and '' or format('%010d', found.taken) .. table.concat(shares)
  found.from, found.last, found.latest = HEAD + 1, #found.text - (SHARE - 1), latest
end

for n, key in ipairs(KEYS) do
  pcall(function()
    local found = read_window(key, nil, 3 * n - 1)
    -- An older take counts no longer.
    if found.text == '' or taken_at + found.window <= now then return end
    give_back(found, found.cost)
    write_window(key, found)
  end)
end
return returned
