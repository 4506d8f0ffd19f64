/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */

export const COUNT_FAILURES_SCRIPT = `
local counts = {}
for i, key in ipairs(KEYS) do
  local count = redis.call('INCR', key)
  if count == 1 or redis.call('TTL', key) < 0 then redis.call('EXPIRE', key, ARGV[1]) end
  counts[2 * i - 1], counts[2 * i] = count, redis.call('TTL', key)
end
return counts
`

export const SET_WITH_LIFE = `
local function set_with_life(key, value, life)
  if life > 0 then redis.call('SET', key, value, 'EX', life) else redis.call('SET', key, value) end
end
`

export const TRIM_LIST_SCRIPT = `
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 1000)
if #expired > 0 then
  redis.call('ZREM', KEYS[1], unpack(expired))
  redis.call('ZREM', KEYS[2], unpack(expired))
end
return #expired
`
