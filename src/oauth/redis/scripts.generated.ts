/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */

export const COUNT_EXCHANGES_SCRIPT = `
local full, longest = 0, 0
for i, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') >= tonumber(ARGV[2 * i - 1]) then
    local left = redis.call('PTTL', key)
    if full == 0 or left > longest then full, longest = i, left end
  end
end
if full > 0 then return { full, longest } end
for i, key in ipairs(KEYS) do
  if redis.call('INCR', key) == 1 then redis.call('EXPIRE', key, ARGV[2 * i]) end
end
return { 0, 0 }
`

export const CREATE_CLIENT_SCRIPT = `
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return 1
`

export const REPLACE_CLIENT_SCRIPT = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
`
