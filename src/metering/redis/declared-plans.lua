-- The last keys are the records of plans, and the last argument is their number. `admit.lua` finds the key
-- of a proof by its place, so it must not see them.
local plan_records = {}
local others = #KEYS - ARGV[#ARGV]
for n = #KEYS, others + 1, -1 do
  plan_records[n - others] = KEYS[n]
  rawset(KEYS, n, nil)
end

--- Returns the keys of the records of plans: the words of a plan's source, from the second on, are places
-- in `plan_records` or literal plans (`=pro`). See `plan_of`.
local function plan_keys(words)
  local keys = {}
  for n, word in ipairs(words) do keys[n] = plan_records[tonumber(word)] or word end
  return keys
end
