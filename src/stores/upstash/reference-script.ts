/** The script that answers for a reference in one step: who it is, what holds, what is counted. */

/**
 * KEYS: the record, the address's ban, and of a proof of possession the key of its use.
 *
 * ARGV: now in milliseconds, for how long after its end a record still counts in seconds, the
 * audience, the thumbprint that was proved (empty: none), for how long the proof's use is kept in
 * seconds, and the key of the ban that the address would have (empty: such bans are not looked for);
 * then of each limit its requests, its window in milliseconds, and either an empty text and
 * the window's name, or `subject`, `client` or `tenant` and the limit's name.
 *
 * Returns the record's text (0: none), whether the proof was used before (1), the keys that were
 * read, each with its value (empty: none), and of each limit five things: the window's name, what is
 * left (-1: refused, -2: not counted, -3: failed), the limit in force, and the counters of this window
 * and the last as they were before.
 *
 * What it decides serves only to count nothing for those who are to be refused: the caller decides
 * anew out of what was read. It counts as `@upstash/ratelimit`'s sliding window does, on the same
 * keys. It makes names of keys out of the record, so it needs a Redis that is no cluster.
 */
export const REFERENCE_SCRIPT = `
local now, tolerance, audience, thumbprint = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local read, limits = {}, {}
local holds, good, used = true, false, 0

local function look(key)
  local value = redis.call('GET', key) or ''
  read[#read + 1] = key
  read[#read + 1] = value
  return value
end

local function ban(key)
  local till = look(key)
  if till ~= '' and (tonumber(till) or math.huge) > now / 1000 then holds = false end
end

local function includes(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end

ban(KEYS[2])
local watches = ARGV[6] ~= ''
if watches then look(ARGV[6]) end
local text = redis.call('GET', KEYS[1])
local part
if text then
  local stored = cjson.decode(text)
  local record = stored.record
  part = stored.parts
  local ends = record.expiresAtSeconds
  good = (ends == cjson.null or now / 1000 < ends + tolerance)
    and includes(record.audiences, audience)
    and (record.confirmation or '') == thumbprint

  local function cut(kind, issuer, value)
    if not value then return end
    local at = look('pc:cutoff:' .. kind .. ':' .. issuer .. ':' .. value)
    if at ~= '' and record.issuedAtSeconds <= (tonumber(at) or math.huge) then holds = false end
  end
  if look('pc:revoked:' .. part.token) ~= '' then holds = false end
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
  if watches then look('pc:observed-ban:subject:' .. whose) end
end

if KEYS[3] and good and holds and not redis.call('SET', KEYS[3], '1', 'NX', 'EX', ARGV[5]) then
  used, holds = 1, false
end

local function count(name, requests, window)
  local limit = tonumber(redis.call('GET', 'pc:limit-override:' .. name .. ':dynamic:global') or requests)
  local number = math.floor(now / window)
  local counter = 'pc:limit:' .. name .. ':'
  local current_key = counter .. string.format('%d', number)
  local current = tonumber(redis.call('GET', current_key) or 0)
  local previous = tonumber(redis.call('GET', counter .. string.format('%d', number - 1)) or 0)
  local weight = math.floor((1 - (now % window) / window) * previous)
  if weight + current >= limit then return -1, limit, current, previous end
  local counted = redis.call('INCRBY', current_key, 1)
  if counted == 1 then redis.call('PEXPIRE', current_key, window * 2 + 1000) end
  return limit - (counted + weight), limit, current, previous
end

for index = 7, #ARGV, 4 do
  local requests, window, by, name = tonumber(ARGV[index]), tonumber(ARGV[index + 1]), ARGV[index + 2], ARGV[index + 3]
  if by ~= '' and part then
    local issuer = by == 'client' and part.tokenIssuer or part.issuer
    name = name .. ':' .. by .. ':' .. issuer .. ':' .. (part[by] or '')
  end
  local ok, left, limit, current, previous = true, -2, 0, 0, 0
  if holds and (by == '' or good) then
    ok, left, limit, current, previous = pcall(count, name, requests, window)
    if not ok then left, limit, current, previous = -3, 0, 0, 0 end
  end
  for _, item in ipairs({ name, left, limit, current, previous }) do limits[#limits + 1] = item end
end

return { text or 0, used, read, limits }
`
