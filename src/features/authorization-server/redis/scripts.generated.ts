/** Generated from `.lua` files by `npm run lua`. Do not edit. */
export const COUNT_EXCHANGES_SCRIPT = "local b,d=0,0\nfor c,a in ipairs(KEYS)do\nif tonumber(redis.call('GET',a)or'0')>=tonumber(ARGV[2*c-1])then\nlocal e=redis.call('PTTL',a)\nif b==0 or e>d then b,d=c,e end\nend\nend\nif b>0 then return{b,d}end\nfor c,a in ipairs(KEYS)do\nif redis.call('INCR',a)==1 then redis.call('EXPIRE',a,ARGV[2*c])end\nend\nreturn{0,0}\n"
export const CREATE_CLIENT_SCRIPT = "redis.call('SET',KEYS[1],ARGV[1])\nredis.call('ZADD',KEYS[2],0,ARGV[2])\nreturn 1\n"
export const REPLACE_CLIENT_SCRIPT = "if redis.call('GET',KEYS[1])~=ARGV[1]then return 0 end\nredis.call('SET',KEYS[1],ARGV[2])\nreturn 1\n"
