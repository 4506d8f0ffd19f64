/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */

export const ADD_TOTALS_SCRIPT = `
if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[2]) or '0') then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[5])
local members = tonumber(ARGV[8])
for at = 9, 8 + members do redis.call('ZADD', KEYS[3], ARGV[6], ARGV[at]) end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[7])
redis.call('EXPIRE', KEYS[3], ARGV[5])
local full = redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2])
for at = 9 + members, #ARGV, 2 do
  local series = ARGV[at]
  if full and redis.call('HEXISTS', KEYS[1], series) == 0 then series = ARGV[3] end
  redis.call('HINCRBY', KEYS[1], series, ARGV[at + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
`
