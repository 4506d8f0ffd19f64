/** Generated from `.lua` files by `npm run lua`. Do not edit. */
export const COUNT_EXCHANGES_SCRIPT = "local b,d=0,0 for c,a in ipairs(KEYS)do if tonumber(redis.call('GET',a)or'0')>=tonumber(ARGV[2*c-1])then local e=redis.call('PTTL',a)if b==0 or e>d then b,d=c,e end end end if b>0 then return{b,d}end for c,a in ipairs(KEYS)do if redis.call('INCR',a)==1 then redis.call('EXPIRE',a,ARGV[2*c])end end return{0,0}\n"
export const CREATE_CLIENT_SCRIPT = "redis.call('SET',KEYS[1],ARGV[1])redis.call('ZADD',KEYS[2],0,ARGV[2])return 1\n"
export const REPLACE_CLIENT_SCRIPT = "if redis.call('GET',KEYS[1])~=ARGV[1]then return 0 end redis.call('SET',KEYS[1],ARGV[2])return 1\n"
