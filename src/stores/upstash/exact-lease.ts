/** Units taken ahead of an exact window, in Lua: a part of the script of admission. See docs/decisions/0037. */
import type { LeaseAsk } from '../../admission/lease.ts'

/** A lease is no more than this part of what is left above the reserve. */
const PART = 4
/** This part of a limit is never lent, so a window that will come near its limit is asked each time. */
const RESERVE = 4
/** A window that has just begun is expected to hold so many times as much, at most. */
const FORECAST = 16
const HEAD = 10
const SHARE = 26

/** What {@link EXACT_LEASE} takes: nothing, or five whole numbers. */
export function leaseArgument(ask: LeaseAsk | undefined): string {
  if (ask === undefined) return ''
  const { units, step, holdMs, returned, returnedEndMicros } = ask
  return `${units} ${step} ${holdMs * 1000} ${returned} ${returnedEndMicros}`
}

/** Of a limit that leases were asked of: units that were granted, and the end of their hold. */
export const LEASE_ANSWERS = 2

/**
 * Stands behind `EXACT_WINDOW`. `lease_of(found, text)` reads what is asked (units, what they have to
 * be a multiple of, how long after now the last of them may be spent, units that come back, and the
 * end of the hold that they were granted with) and takes back what comes back. `lend(found)` grants
 * what there is room for: units whose last is taken at the end of the hold. Room is what the window
 * will have left at the pace at which it has been taken: one that has just begun is always nearly empty.
 *
 * What comes back goes off the oldest shares. That is never more than what is not spent: whoever was
 * granted later still counts as long as it did. What has left the window with its share comes too late.
 */
export const EXACT_LEASE = `
local function give_back(found, units)
  local text, from, last = found.text, found.from, found.last
  units = math.min(units, found.taken)
  if units < 1 then return end
  found.taken = found.taken - units
  while from <= last and units_at(text, from) <= units do
    units, from = units - units_at(text, from), from + ${SHARE}
  end
  local rest = ''
  if from <= last then
    local first = format('%010d', units_at(text, from) - units)
    rest = sub(text, from, from + 15) .. first .. sub(text, from + ${SHARE})
  end
  local is_empty = rest == ''
  found.text = is_empty and rest or format('%010d', found.taken) .. rest
  found.from, found.last = ${HEAD + 1}, is_empty and 0 or #found.text - ${SHARE - 1}
  found.oldest = is_empty and now or time_at(found.text, ${HEAD + 1})
  found.changed, found.fits = true, found.taken + found.cost <= found.limit
end

local function lease_of(found, text)
  local units, step, hold, back, till = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  found.ahead = { units = units + 0, step = step + 0, hold = hold + 0 }
  if till + found.window > now then give_back(found, back + 0) end
end

local function lend(found)
  local ahead, age = found.ahead, max(1, now - found.oldest)
  local expected = found.taken * max(1, math.min(${FORECAST}, found.window / age))
  local left = found.limit - expected - found.limit / ${RESERVE}
  local most = math.min(ahead.units, floor(left / ${PART}))
  local units, till = floor(most / ahead.step) * ahead.step, now + ahead.hold
  if units < 1 then return 0, 0 end
  take(found, units, till, format('%010.0f', floor(till / 1000000)), till % 1000000)
  return units, till
end
`
