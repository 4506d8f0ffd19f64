/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */
import { APPEND_CHANGES, EXTEND_CUTOFF, FEED } from '../../revocation/redis/scripts.generated.ts'
import { SET_WITH_LIFE } from '../../redis/scripts.generated.ts'

export const API_KEY = `
local function token_id_of(record)
  local text = redis.call('GET', record)
  return text and cjson.decode(text).tokenId or ''
end
`

export const END_API_KEY_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, API_KEY, `
if token_id_of(KEYS[1]) ~= ARGV[2] then return 0 end
append_changes(KEYS[6], { KEYS[5] })
redis.call('SET', KEYS[5], '1', 'EX', ARGV[3])
redis.call('DEL', KEYS[4], KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
`].join('')

export const FAMILY = `
local function end_family(at, ttl_seconds)
  extend_cutoff(KEYS[3], KEYS[2], at, ttl_seconds)
  if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'ended', '1') end
end
`

export const END_FAMILY_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, EXTEND_CUTOFF, FAMILY, `
end_family(ARGV[1], ARGV[2])
return 1
`].join('')

export const OPEN_FAMILY_SCRIPT = `
redis.call('HSET', KEYS[1], 'session', ARGV[1], 'current', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`

export const ROTATE_FAMILY_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, EXTEND_CUTOFF, FAMILY, `
local family = redis.call('HMGET', KEYS[1],
  'current', 'previous', 'nonce', 'rotated_ms', 'issued_at', 'ended')
if not family[1] then return {'unknown'} end
if family[6] then return {'ended'} end
local first = ARGV[1] == family[1]
local retry = not first and ARGV[1] == family[2]
  and tonumber(ARGV[4]) - tonumber(family[4]) <= tonumber(ARGV[5])
if not (first or retry) then
  end_family(ARGV[8], ARGV[9])
  return {'reused'}
end
for index = 4, #KEYS do
  local cutoff = redis.call('GET', KEYS[index])
  if cutoff then
    if not string.match(cutoff, '^%d+$') then return redis.error_reply('ERR not a cut-off') end
    if tonumber(cutoff) >= tonumber(ARGV[7]) then return {'cut_off'} end
  end
end
if retry then return {'replayed', family[3], family[5]} end
redis.call('HSET', KEYS[1], 'current', ARGV[2], 'previous', ARGV[1], 'nonce', ARGV[3],
  'rotated_ms', ARGV[4], 'issued_at', ARGV[6])
return {'rotated', ARGV[3], ARGV[6]}
`].join('')

export const WRITE_API_KEY_SCRIPT = /* @__PURE__ */ [FEED, APPEND_CHANGES, SET_WITH_LIFE, API_KEY, `
local life = tonumber(ARGV[4])
if token_id_of(KEYS[1]) ~= ARGV[6] then return 0 end
if KEYS[5] then
  append_changes(KEYS[7], { KEYS[6] })
  redis.call('SET', KEYS[6], '1', 'EX', ARGV[7])
  redis.call('DEL', KEYS[5])
end
set_with_life(KEYS[4], ARGV[3], life)
set_with_life(KEYS[1], ARGV[2], life)
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
`].join('')
