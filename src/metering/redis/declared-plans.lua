--- Returns the keys of the records of plans: the words of a plan's source, from the second on, are keys
-- or literal plans (`=pro`). See `plan_of`.
local function plan_keys(words) return words end
