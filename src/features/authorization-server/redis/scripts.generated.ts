/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */
export const COUNT_EXCHANGES_SCRIPT = "local full,longest=0,0\nfor i,key in ipairs(KEYS)do\nif tonumber(redis.call('GET',key)or'0')>=tonumber(ARGV[2*i-1])then\nlocal left=redis.call('PTTL',key)\nif full==0 or left>longest then full,longest=i,left end\nend\nend\nif full>0 then return{full,longest}end\nfor i,key in ipairs(KEYS)do\nif redis.call('INCR',key)==1 then redis.call('EXPIRE',key,ARGV[2*i])end\nend\nreturn{0,0}\n"
export const CREATE_CLIENT_SCRIPT = "redis.call('SET',KEYS[1],ARGV[1])\nredis.call('ZADD',KEYS[2],0,ARGV[2])\nreturn 1\n"
export const REPLACE_CLIENT_SCRIPT = "if redis.call('GET',KEYS[1])~=ARGV[1]then return 0 end\nredis.call('SET',KEYS[1],ARGV[2])\nreturn 1\n"
