-- The last keys are the records of plans, and the last argument is their number. `admit.lua` finds the key
-- of a proof by its place, where the first record would be without a proof.
local others = #KEYS - ARGV[#ARGV]
local first_record = KEYS[others + 1]
rawset(KEYS, others + 1, nil)

--- Returns the keys of the records of plans: the words of a plan's source, from the second on, are places
-- of records or literal plans (`=pro`). See `plan_of`.
local function plan_keys(words)
  for n, word in ipairs(words) do
    local place = tonumber(word)
    if place then words[n] = place == 1 and first_record or KEYS[others + place] end
  end
  return words
end
