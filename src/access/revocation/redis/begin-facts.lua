--- Marks facts as pending, before they are written to the control lane. Each writer has marks of its own: the
-- end of one leaves those of another, which may have written later.
--
-- KEYS: the pending facts, the clock of facts. ARGV: the facts. Returns the marks.

--@include fact-clock.lua
--@include mark-score.lua

local version = next_version(KEYS[2])
local marks = {}
for n, fact in ipairs(ARGV) do
  marks[n] = version .. ' ' .. fact
  redis.call('ZADD', KEYS[1], mark_score(version), marks[n])
end
return marks
