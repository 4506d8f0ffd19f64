--@include fact-clock.lua
--@include mark-score.lua

local FEED --@inline ../../../redis/lua-keys.ts
local PENDING_FACTS --@inline ../../../redis/lua-keys.ts
local FACT_CLOCK --@inline ../../../redis/lua-keys.ts

--- Marks a fact as pending in the step that writes it, so that any gateway copies it to the lanes that need
-- it, whatever becomes of the writer. `feed` is the feed of the control lane. An empty fact: there are no lanes.
local function mark_fact(feed, fact)
  if fact == '' then return end
  local prefix = string.sub(feed, 1, -1 - #FEED)
  local version = next_version(prefix .. FACT_CLOCK)
  redis.call('ZADD', prefix .. PENDING_FACTS, mark_score(version), version .. ' ' .. fact)
end
