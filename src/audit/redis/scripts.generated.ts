/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */

export const KEEP_EVENTS_SCRIPT = `
local before = redis.call('GET', KEYS[4])
if before then return tonumber(before) end
local lost = tonumber(redis.call('GET', KEYS[2]) or '0') + tonumber(ARGV[5])
for at = 6, #ARGV do redis.call('ZADD', KEYS[1], ARGV[1], ARGV[at]) end
local cut = math.max(0, redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2]))
if lost + cut > 0 then
  redis.call('SET', KEYS[2], string.format('%.0f', lost + cut), 'EX', ARGV[3])
end
if cut > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], 0, cut - 1) end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[3])
redis.call('SET', KEYS[4], cut, 'EX', ARGV[4])
return cut
`

export const REPORT_LOST_SCRIPT = `
local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
if left < 0 or redis.call('SCARD', KEYS[2]) > 0 then return 0 end
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
if left == 0 then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], string.format('%.0f', left), 'EX', ARGV[3]) end
return 1
`
