--- Reads the kinds of subjects of a model. `script.ts` generates the model in front of this.
-- Returns the bit position of a kind of subjects; nil: the model has no such kind.
local function place_of(kind)
  local _, before = string.find(places, '|' .. kind .. '=', 1, true)
  return before and tonumber(string.match(places, '^%d+', before + 1))
end

-- Reports whether subjects of the kind at a position can have a relation.
local function reaches(rule, place)
  if not place then return false end
  local digit = math.floor(place / 4) + 1
  local bits = tonumber(string.sub(rule.reach, digit, digit), 16) or 0
  return math.floor(bits / 2 ^ (place % 4)) % 2 == 1
end
