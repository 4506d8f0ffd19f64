--- Resolves a reference, and answers for its principal what `admit.lua` answers, in one step.
--
-- KEYS: the record, the address's ban, and, with a proof of possession, the key of its use.
--
-- ARGV:
-- 1. The current time in milliseconds.
-- 2. The tolerance after a record's end, in seconds.
-- 3. The audience.
-- 4. The proved thumbprint (empty: none).
-- 5. Seconds to keep the use of the proof.
-- 6. The key of the address's ban in observe mode (empty: such bans are not read).
-- 7. Whether to record the use of an API key (1: yes). -1: nothing is written.
-- 8. The key of the ban of the address's credentials (empty: it is not read).
-- 9. The same in observe mode (empty: as above).
--
-- Six more arguments follow for each limit: the four of `read_window` (a limit that is not exact
-- refuses at -1); then either an empty text and the window's name, or `key`, `subject`, `client` or
-- `tenant` and the limit's name. A principal without an API key counts by `subject` instead of `key`.
-- An exact window by `subject` contains the tenant of a principal that has one, unless `*` follows.
--
-- Returns the record's text (0: none), whether the proof was used before (1), and the keys that were
-- read, each with its value (null: none). Then it returns five values for each limit. An exact limit
-- has the window's name, the `state_of` the window and a 0. Another limit has the window's name, the
-- limit in force, the units left (-1: refused), and the counters of this window and of the previous
-- one before this request. The limit in force is -1 if the window failed, and -2 if it was not counted.
--
-- The script decides only in order not to count refused requests: the gateway decides again from the
-- values that were read. Limits that are not exact are counted as the sliding window of
-- `@upstash/ratelimit` counts them, on the same keys. The script builds key names from the record, with
-- the prefix of the record's key. On a Redis cluster, that is the prefix of a lane.

--@script
--@include exact-window.lua
--@include vouching-issuer.lua
--@include reference-prefix.lua

local REVOKED_TOKEN_PREFIX --@inline ../../../redis/lua-keys.ts
local REVOKED_BEFORE_PREFIX --@inline ../../../redis/lua-keys.ts
local SUBJECT_BAN_PREFIX --@inline ../../../redis/lua-keys.ts
local OBSERVED_SUBJECT_BAN_PREFIX --@inline ../../../redis/lua-keys.ts
local LIMIT_PREFIX --@inline ../../../redis/lua-keys.ts
local LIMIT_OVERRIDE_PREFIX --@inline ../../../redis/lua-keys.ts
local LIMIT_OVERRIDE_SUFFIX --@inline ../../../redis/lua-keys.ts
local API_KEY_USE_PREFIX --@inline ../../../redis/lua-keys.ts
-- The last use of an API key is written again after this number of seconds.
local USE_INTERVAL = 60 --@inline
-- 400 days.
local USE_LIFE = 34560000 --@inline
local FAILED = -1 --@inline
local NOT_COUNTED = -2 --@inline

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
if ARGV[8] ~= '' then check_ban(ARGV[8]) end
if ARGV[9] ~= '' then get(ARGV[9]) end
local reads_observed = ARGV[6] ~= ''
if reads_observed then get(ARGV[6]) end
local text = call('GET', KEYS[1])
local part
if text then
  local reference = cjson.decode(text)
  local record = reference.record
  part = reference.parts
  local ends = record.expiresAtSeconds
  is_valid = not record.revokedAtSeconds
    and (ends == cjson.null or wall / 1000 < ends + tolerance)
    and includes(record.audiences, audience)
    and (record.confirmation or '') == thumbprint

  local function check_cutoff(kind, issuer, value)
    if not value then return end
    local cutoff = get(prefix .. REVOKED_BEFORE_PREFIX .. kind .. ':' .. issuer .. ':' .. value)
    if cutoff and record.issuedAtSeconds <= (tonumber(cutoff) or math.huge) then holds = false end
  end
  if get(prefix .. REVOKED_TOKEN_PREFIX .. part.token) then holds = false end
  check_cutoff('session', part.tokenIssuer, part.session)
  check_cutoff('client', part.tokenIssuer, part.client)
  check_cutoff('tenant', part.issuer, part.tenant)
  check_cutoff('subject', part.issuer, part.subject)
  if part.issuer ~= part.tokenIssuer then
    check_cutoff('tenant', part.tokenIssuer, part.tenant)
    check_cutoff('subject', part.tokenIssuer, part.subject)
  end
  local function check_subject_ban(issuer)
    local subject = issuer .. ':' .. part.subject
    check_ban(prefix .. SUBJECT_BAN_PREFIX .. subject)
    if reads_observed then get(prefix .. OBSERVED_SUBJECT_BAN_PREFIX .. subject) end
  end
  check_subject_ban(part.issuer)
  if part.tenant then
    -- What operators of the tenant have decided. A token id has no character that a key escapes.
    local issuer = part.issuer .. ':' .. part.tenant
    check_cutoff('token', issuer, record.tokenId)
    check_cutoff('session', issuer, part.session)
    check_cutoff('client', issuer, part.client)
    check_cutoff('subject', issuer, part.subject)
    check_subject_ban(issuer)
  end
end

if KEYS[3] and is_valid and holds and not call('SET', KEYS[3], '1', 'NX', 'EX', ARGV[5]) then
  used, holds = 1, false
end

-- At most once a minute, for all isolates together. A failure must not refuse the request.
if is_valid and holds and part.key and ARGV[7] == '1' then
  pcall(function()
    local use = prefix .. API_KEY_USE_PREFIX .. part.key
    if clock[1] - (call('GET', use) or 0) >= USE_INTERVAL then call('SET', use, clock[1], 'EX', USE_LIFE) end
  end)
end

--- Counts a request as `@upstash/ratelimit` does. Returns the four values of the reply.
local function count(name, override, limit, seconds)
  if override then limit = tonumber(override) end
  local window = seconds * 1000
  local number = floor(wall / window)
  local counter = prefix .. LIMIT_PREFIX .. name .. ':'
  local current_key = counter .. format('%d', number)
  local current = tonumber(call('GET', current_key) or 0)
  local previous = tonumber(call('GET', counter .. format('%d', number - 1)) or 0)
  local weight = floor((1 - (wall % window) / window) * previous)
  if weight + current >= limit then return { limit, -1, current, previous } end
  local counted = call('INCRBY', current_key, 1)
  if counted == 1 then call('PEXPIRE', current_key, window * 2 + 1000) end
  return { limit, limit - (counted + weight), current, previous }
end

if ARGV[7] == '-1' then
  local function pass() end
  take, write_window = pass, pass
end
--- Returns the override of a window: with `everywhere`, at most that of this window.
local function override_of(name, everywhere)
  local own = call('GET', prefix .. LIMIT_OVERRIDE_PREFIX .. name .. LIMIT_OVERRIDE_SUFFIX)
  return everywhere and smaller(own, override_of(everywhere)) or own
end

local counts, all_admit = {}, true
for at = 10, #ARGV, 6 do
  local force, by, name, everywhere = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], nil
  if by ~= '' and part then
    local is_everywhere = force == '-1' or sub(by, -1) == '*'
    by = string.match(by, '%a+')
    if by == 'key' and not part.key then by = 'subject' end
    local owner = name .. ':' .. by .. ':' .. vouching_issuer(part, by) .. ':'
    name = owner .. (part[by] or '')
    if by == 'subject' and part.tenant and not is_everywhere then
      everywhere, name = name, owner .. part.tenant .. ':' .. part[by]
    end
  end
  local window, state = nil, { NOT_COUNTED, 0, 0 }
  if holds and (by == '' or is_valid) then
    local ok, override = pcall(override_of, name, everywhere)
    if force ~= '-1' then
      if ok then ok, window = pcall(read_window, prefix .. LIMIT_PREFIX .. name, override, at) end
      if not ok then window = nil end
      all_admit = admits(window, force) and all_admit
    elseif ok then
      ok, state = pcall(count, name, override, ARGV[at] + 0, ARGV[at + 1] + 0)
    end
    if not ok or force ~= '-1' then state = { FAILED, 0, 0 } end
  end
  counts[#counts + 1] = { name = name, window = window, state = state }
end
for _, each in ipairs(counts) do
  local window, state = each.window, each.state
  if window then
    if window.fits and all_admit then take(window, window.cost, now, clock[1], clock[2]) end
    if pcall(write_window, prefix .. LIMIT_PREFIX .. each.name, window) then state = { state_of(window) } end
  end
  for _, item in ipairs({ each.name, state[1], state[2], state[3], state[4] or 0 }) do
    limits[#limits + 1] = item
  end
end

return { text or 0, used, read, limits }
