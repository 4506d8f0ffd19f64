/** The script that resolves a reference and answers admission for it in one step. */
import { EXACT_WINDOW } from './exact-window.ts'

/**
 * KEYS: the record, the address's ban, and, with a proof of possession, the key of its use.
 *
 * ARGV: now in milliseconds; the tolerance after a record's end in seconds; the audience; the
 * proved thumbprint (empty: none); the TTL of the proof's use in seconds; the key of the address's
 * ban in observe mode (empty: such bans are not read). Then for each limit: its units; its window
 * in seconds; the cost of the request; when it refuses, as in `ADMISSION_SCRIPT` (-1: the limit is
 * not exact); and either an empty text and the window's name, or `subject`, `client` or `tenant`
 * and the limit's name.
 *
 * Returns the record's text (0: none), whether the proof was used before (1), and the keys that
 * were read, each with its value (null: none). Then it returns five values for each limit. An exact
 * limit has the window's name, the answer of {@link EXACT_WINDOW} and a 0. Another limit has the
 * window's name, the limit in force, the units left (-1: refused), and the counters of this window
 * and of the previous one before this request. The limit is -1 if the window failed, and -2 if it
 * was not counted.
 *
 * The script decides only in order not to count refused requests: the gateway decides again from
 * the values that were read. Limits that are not exact are counted as the sliding window of
 * `@upstash/ratelimit` counts them, on the same keys. The script builds key names from the record,
 * so it does not work on a Redis cluster.
 */
export const REFERENCE_SCRIPT = `${EXACT_WINDOW}
local wall, tolerance, audience, thumbprint = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local read, limits = {}, {}
local holds, good, used = true, false, 0

local function get(key)
  local value = redis.call('GET', key)
  read[#read + 1] = key
  read[#read + 1] = value
  return value
end

local function ban(key)
  local till = get(key)
  if till and (tonumber(till) or math.huge) > wall / 1000 then holds = false end
end

local function includes(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end

ban(KEYS[2])
local watches = ARGV[6] ~= ''
if watches then get(ARGV[6]) end
local text = redis.call('GET', KEYS[1])
local part
if text then
  local stored = cjson.decode(text)
  local record = stored.record
  part = stored.parts
  local ends = record.expiresAtSeconds
  good = (ends == cjson.null or wall / 1000 < ends + tolerance)
    and includes(record.audiences, audience)
    and (record.confirmation or '') == thumbprint

  local function cut(kind, issuer, value)
    if not value then return end
    local at = get('pc:cutoff:' .. kind .. ':' .. issuer .. ':' .. value)
    if at and record.issuedAtSeconds <= (tonumber(at) or math.huge) then holds = false end
  end
  if get('pc:revoked:' .. part.token) then holds = false end
  cut('session', part.tokenIssuer, part.session)
  cut('client', part.tokenIssuer, part.client)
  cut('tenant', part.issuer, part.tenant)
  cut('subject', part.issuer, part.subject)
  if part.issuer ~= part.tokenIssuer then
    cut('tenant', part.tokenIssuer, part.tenant)
    cut('subject', part.tokenIssuer, part.subject)
  end
  local whose = part.issuer .. ':' .. part.subject
  ban('pc:ban:subject:' .. whose)
  if watches then get('pc:observed-ban:subject:' .. whose) end
end

if KEYS[3] and good and holds and not redis.call('SET', KEYS[3], '1', 'NX', 'EX', ARGV[5]) then
  used, holds = 1, false
end

local function count(name, limit, seconds, override)
  if override then limit = tonumber(override) end
  local window = seconds * 1000
  local number = math.floor(wall / window)
  local counter = 'pc:limit:' .. name .. ':'
  local current_key = counter .. string.format('%d', number)
  local current = tonumber(redis.call('GET', current_key) or 0)
  local previous = tonumber(redis.call('GET', counter .. string.format('%d', number - 1)) or 0)
  local weight = math.floor((1 - (wall % window) / window) * previous)
  if weight + current >= limit then return limit, -1, current, previous end
  local counted = redis.call('INCRBY', current_key, 1)
  if counted == 1 then redis.call('PEXPIRE', current_key, window * 2 + 1000) end
  return limit, limit - (counted + weight), current, previous
end

local function ask(name, limit, seconds, cost, force)
  local override = redis.call('GET', 'pc:limit-override:' .. name .. ':dynamic:global')
  if force < 0 then return { count(name, limit, seconds, override) } end
  return look('pc:limit:' .. name, override, limit, seconds, cost)
end

local asked, fits = {}, true
for index = 7, #ARGV, 6 do
  local force, by, name = tonumber(ARGV[index + 3]), ARGV[index + 4], ARGV[index + 5]
  if by ~= '' and part then
    local issuer = by == 'client' and part.tokenIssuer or part.issuer
    name = name .. ':' .. by .. ':' .. issuer .. ':' .. (part[by] or '')
  end
  local known, found = true, { -2, 0, 0, 0 }
  if holds and (by == '' or good) then
    local limit, seconds, cost = ARGV[index] + 0, ARGV[index + 1] + 0, ARGV[index + 2] + 0
    known, found = pcall(ask, name, limit, seconds, cost, force)
    if not known then found = { -1, 0, 0, 0 } end
    local is_spent = known and found.fits == false
    if is_spent and force % 2 == 1 or not known and force >= 2 then fits = false end
  end
  asked[#asked + 1] = { name, found }
end
for _, each in ipairs(asked) do
  local name, found = each[1], each[2]
  if found.text then
    if found.fits and fits then take(found, found.cost, now, clock[1], clock[2]) end
    -- Fails where Redis is full.
    found = pcall(keep, 'pc:limit:' .. name, found) and { answer(found) } or { -1, 0, 0 }
  end
  for _, item in ipairs({ name, found[1], found[2], found[3], found[4] or 0 }) do
    limits[#limits + 1] = item
  end
end

return { text or 0, used, read, limits }
`
