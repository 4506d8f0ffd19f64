--- Returns the keys of the records of plans for the principal of a reference: each word of a plan's
-- source is `key`, `subject`, `client` or `tenant`. See `plan_of`.

--@include ../../../access/admission/redis/vouching-issuer.lua
--@include ../../../access/admission/redis/reference-prefix.lua

local PLAN_PREFIX --@inline ../../../redis/lua-keys.ts

local function plan_keys(words)
  local text = redis.call('GET', KEYS[1])
  local part = text and cjson.decode(text).parts or {}
  local keys = {}
  for _, by in ipairs(words) do
    local issuer = vouching_issuer(part, by)
    if part[by] then keys[#keys + 1] = prefix .. PLAN_PREFIX .. by .. ':' .. issuer .. ':' .. part[by] end
  end
  return keys
end
