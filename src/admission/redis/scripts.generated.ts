/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */
import { SET_WITH_LIFE } from '../../redis/scripts.generated.ts'

export const EXACT_WINDOW = `
local call, sub, format, floor, max = redis.call, string.sub, string.format, math.floor, math.max
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function time_at(text, from) return sub(text, from, from + 15) + 0 end
local function units_at(text, from) return sub(text, from + 16, from + 25) + 0 end
local function read_window(key, override, limit, seconds, cost)
  local text, from, taken, oldest, ahead = call('GET', key), 10 + 1, 0, now, 0
  if override then limit = string.match(override, '^%d+$') + 0 end
  local window = seconds * 1000000
  local last = text and #text - (26 - 1) or 0
  if text then
    assert(last > 10 and #text % 26 == 10)
    taken, oldest = sub(text, 1, 10) + 0, time_at(text, from)
    while oldest + window <= now do
      taken, from = taken - units_at(text, from), from + 26
      oldest = from <= last and time_at(text, from) or now
    end
    assert(taken >= 0)
    while from <= last and time_at(text, last) > now + window do
      ahead, last = ahead + units_at(text, last), last - 26
    end
    if ahead > 0 then
      text = sub(text, 1, last + 26 - 1) .. format('%016.0f%010d', now + window, ahead)
      last = #text - (26 - 1)
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
  local taken, till = found.taken + units, last + 26 - 1
  if from <= last then
    local time, before = time_at(text, last), units_at(text, last)
    if time > at then
      seconds, micros = sub(text, last, last + 9), sub(text, last + 10, last + 15)
    end
    local step, most = found.window / 8, max(1, floor(found.limit / 16))
    local joins = before + units <= most and floor(time / step) == floor(max(time, at) / step)
    if joins or last - from >= 26 * (40 - 1) then
      till, units = last - 1, before + units
    end
  end
  text = format('%010d%s%s%06d%010d', taken, sub(text, from, till), seconds, micros, units)
  found.taken, found.changed = taken, true
  found.text, found.from, found.last = text, 10 + 1, #text - (26 - 1)
  if #text == 10 + 26 then found.oldest = time_at(text, 10 + 1) end
end
local function write_window(key, found)
  if not found.changed then return end
  local text = found.text
  if text == '' then return call('DEL', key) end
  if found.from > 10 + 1 then text = format('%010d', found.taken) .. sub(text, found.from) end
  local life = time_at(text, #text - (26 - 1)) + found.window - now
  call('SET', key, text, 'PX', floor(life / 1000) + 2)
end
local function state_of(found)
  local taken, limit, from, time = found.taken, found.limit, found.from, found.oldest
  local short = taken + found.cost - limit
  while short > 1 and from <= found.last do
    short = short - units_at(found.text, from)
    if short > 0 then from = from + 26 end
    time = from <= found.last and time_at(found.text, from) or now
  end
  local left = max(0, limit - taken)
  return limit, found.fits and left or -1 - left, math.ceil((time + found.window - now) / 1000)
end
local function window_of(key, override, at)
  local ok, found = pcall(read_window, key, override, ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0)
  return ok and found or nil
end
local function admits(found, force)
  if force == '3' or force == (found and '1' or '2') then return found and found.fits or false end
  return true
end
local function charge(found)
  if found.cost > 0 then take(found, found.cost, now, clock[1], clock[2]) end
end
local function stored(key, found)
  return pcall(write_window, key, found) and found or nil
end
`

export const ADMIT_REFERENCE_SCRIPT = /* @__PURE__ */ [EXACT_WINDOW, `
local wall, tolerance, audience, thumbprint = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local read, limits = {}, {}
local holds, is_valid, used = true, false, 0
local function get(key)
  local value = call('GET', key)
  read[#read + 1] = key
  read[#read + 1] = value
  return value
end
local function check_ban(key)
  local till = get(key)
  if till and (tonumber(till) or math.huge) > wall / 1000 then holds = false end
end
local function includes(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end
check_ban(KEYS[2])
local reads_observed = ARGV[6] ~= ''
if reads_observed then get(ARGV[6]) end
local text = call('GET', KEYS[1])
local part
if text then
  local reference = cjson.decode(text)
  local record = reference.record
  part = reference.parts
  local ends = record.expiresAtSeconds
  is_valid = (ends == cjson.null or wall / 1000 < ends + tolerance)
    and includes(record.audiences, audience)
    and (record.confirmation or '') == thumbprint
  local function check_cutoff(kind, issuer, value)
    if not value then return end
    local cutoff = get('pc:cutoff:' .. kind .. ':' .. issuer .. ':' .. value)
    if cutoff and record.issuedAtSeconds <= (tonumber(cutoff) or math.huge) then holds = false end
  end
  if get('pc:revoked:' .. part.token) then holds = false end
  check_cutoff('session', part.tokenIssuer, part.session)
  check_cutoff('client', part.tokenIssuer, part.client)
  check_cutoff('tenant', part.issuer, part.tenant)
  check_cutoff('subject', part.issuer, part.subject)
  if part.issuer ~= part.tokenIssuer then
    check_cutoff('tenant', part.tokenIssuer, part.tenant)
    check_cutoff('subject', part.tokenIssuer, part.subject)
  end
  local subject = part.issuer .. ':' .. part.subject
  check_ban('pc:ban:subject:' .. subject)
  if reads_observed then get('pc:observed-ban:subject:' .. subject) end
end
if KEYS[3] and is_valid and holds and not call('SET', KEYS[3], '1', 'NX', 'EX', ARGV[5]) then
  used, holds = 1, false
end
local function count(name, override, limit, seconds)
  if override then limit = tonumber(override) end
  local window = seconds * 1000
  local number = floor(wall / window)
  local counter = 'pc:limit:' .. name .. ':'
  local current_key = counter .. format('%d', number)
  local current = tonumber(call('GET', current_key) or 0)
  local previous = tonumber(call('GET', counter .. format('%d', number - 1)) or 0)
  local weight = floor((1 - (wall % window) / window) * previous)
  if weight + current >= limit then return { limit, -1, current, previous } end
  local counted = call('INCRBY', current_key, 1)
  if counted == 1 then call('PEXPIRE', current_key, window * 2 + 1000) end
  return { limit, limit - (counted + weight), current, previous }
end
local counts, all_admit = {}, true
for at = 7, #ARGV, 6 do
  local force, by, name = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
  if by ~= '' and part then
    local issuer = by == 'client' and part.tokenIssuer or part.issuer
    name = name .. ':' .. by .. ':' .. issuer .. ':' .. (part[by] or '')
  end
  local window, state = nil, { -2, 0, 0 }
  if holds and (by == '' or is_valid) then
    local ok, override = pcall(call, 'GET', 'pc:limit-override:' .. name .. ':dynamic:global')
    if force ~= '-1' then
      window = ok and window_of('pc:limit:' .. name, override, at) or nil
      all_admit = admits(window, force) and all_admit
    elseif ok then
      ok, state = pcall(count, name, override, ARGV[at] + 0, ARGV[at + 1] + 0)
    end
    if not ok or force ~= '-1' then state = { -1, 0, 0 } end
  end
  counts[#counts + 1] = { name = name, window = window, state = state }
end
for _, each in ipairs(counts) do
  local window, state = each.window, each.state
  if window then
    if window.fits and all_admit then charge(window) end
    if stored('pc:limit:' .. each.name, window) then state = { state_of(window) } end
  end
  for _, item in ipairs({ each.name, state[1], state[2], state[3], state[4] or 0 }) do
    limits[#limits + 1] = item
  end
end
return { text or 0, used, read, limits }
`].join('')

export const LEASE = `
local function give_back(found, units)
  local text, from, last = found.text, found.from, found.last
  units = math.min(units, found.taken)
  if units < 1 then return end
  found.taken = found.taken - units
  while from <= last and units_at(text, from) <= units do
    units, from = units - units_at(text, from), from + 26
  end
  local rest = ''
  if from <= last then
    local first = format('%010d', units_at(text, from) - units)
    rest = sub(text, from, from + 15) .. first .. sub(text, from + 26)
  end
  local is_empty = rest == ''
  found.text = is_empty and rest or format('%010d', found.taken) .. rest
  found.from, found.last = 10 + 1, is_empty and 0 or #found.text - (26 - 1)
  found.oldest = is_empty and now or time_at(found.text, 10 + 1)
  found.changed, found.fits = true, found.taken + found.cost <= found.limit
end
local function read_lease(found, text)
  local units, step, hold, back, till = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  found.lease = { units = units + 0, step = step + 0, hold = hold + 0 }
  if till + found.window > now then give_back(found, back + 0) end
end
local function grant_lease(found)
  local lease, age = found.lease, max(1, now - found.oldest)
  local expected = found.taken * max(1, math.min(16, found.window / age))
  local left = found.limit - expected - found.limit / 4
  local most = math.min(lease.units, floor(left / 4))
  local units, till = floor(most / lease.step) * lease.step, now + lease.hold
  if units < 1 then return 0, 0 end
  take(found, units, till, format('%010.0f', floor(till / 1000000)), till % 1000000)
  return units, till
end
`

export const ADMIT_SCRIPT = /* @__PURE__ */ [EXACT_WINDOW, LEASE, `
local checked, limits = ARGV[1] + 0, ARGV[2] + 0
local reply, holds = { 0, 0 }, true
local any_exists = checked + limits > 0 and call('EXISTS', unpack(KEYS, 1, checked + limits)) > 0
if any_exists then
  local tokens, cutoffs, bans = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local issued, wall = tonumber(ARGV[7]), ARGV[8] / 1000
  for n = 1, checked do
    local value = call('GET', KEYS[n])
    if value then
      reply[1] = reply[1] + 1
      reply[#reply + 1] = n
      reply[#reply + 1] = value
      local number = tonumber(value) or math.huge
      local is_ban = n > cutoffs and n <= bans
      if n <= tokens or n <= cutoffs and issued <= number or is_ban and number > wall then
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
  local at, ok, override, found = 4 + 5 * n, true, false, nil
  if any_exists then ok, override = pcall(call, 'GET', KEYS[checked + n]) end
  if ok then found = window_of(KEYS[checked + limits + n], override, at) end
  if found and ARGV[at + 4] ~= '' and not pcall(read_lease, found, ARGV[at + 4]) then found = nil end
  windows[n] = found or false
  holds = admits(found, ARGV[at + 3]) and holds
end
for n = 1, limits do
  local found, at, lent, till = windows[n], #reply, 0, 0
  if found then
    if found.fits and holds then
      charge(found)
      if found.lease then lent, till = grant_lease(found) end
    end
    found = stored(KEYS[checked + limits + n], found)
  end
  if found then
    reply[at + 1], reply[at + 2], reply[at + 3] = state_of(found)
    if found.lease then reply[at + 4], reply[at + 5] = lent, till end
  else
    reply[at + 1], reply[at + 2], reply[at + 3] = -1, 0, 0
    if ARGV[8 + 5 * n] ~= '' then reply[at + 4], reply[at + 5] = 0, 0 end
  end
end
return reply
`].join('')

export const CREATE_OVERRIDE_SCRIPT = /* @__PURE__ */ [SET_WITH_LIFE, `
local life = tonumber(ARGV[4])
local earlier = {}
for n = 4, #KEYS, 2 do
  local owner = redis.call('GET', KEYS[n + 1])
  if owner then earlier[owner] = true end
  set_with_life(KEYS[n], ARGV[3], life)
  set_with_life(KEYS[n + 1], ARGV[1], life)
end
for id in pairs(earlier) do
  local text = redis.call('GET', ARGV[6] .. id)
  local left = false
  for _, window in ipairs(text and cjson.decode(text).windows or {}) do
    if redis.call('GET', ARGV[7] .. window) == id then left = true end
  end
  if not left then
    redis.call('DEL', ARGV[6] .. id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZREM', KEYS[3], id)
  end
end
set_with_life(KEYS[1], ARGV[2], life)
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
`].join('')

export const REMOVE_OVERRIDE_SCRIPT = `
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
for n = 4, #KEYS, 2 do
  if redis.call('GET', KEYS[n + 1]) == ARGV[1] then redis.call('DEL', KEYS[n], KEYS[n + 1]) end
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
`
