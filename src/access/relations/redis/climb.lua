--@include walk.lua

--- Finds the memberships of a subject, from the subject upwards.
--
-- An object may be shared with thousands of groups, while the subject is in a few. So the script does
-- not walk into usersets that are memberships (see `membershipsOf`). Instead it reads the subject's
-- own memberships from the index of its tuples, then theirs, level by level.

-- Share of the work limit that the search for memberships may use, 0 to 1.
local CLIMB = 0.4 --@inline
-- From this number of memberships on, one extra call to compare the sizes of two sets is worth its
-- cost.
local MANY = 16 --@inline

local subjects = ARGV[11]
-- The rest of the limits is for looking up the memberships, and for the walk.
local max_climb, max_added = max_work * CLIMB, max_walked * CLIMB
local climbed, found, kind_of, far, via, made = 0, {}, {}, {}, {}, {}
-- `expanded` is the last entry of `found` whose own memberships have been read. `ended` is 'all' or
-- 'too many' when the search has ended. `far` maps each membership to the number of tuples between it
-- and a tuple that names the subject.
local expanded, ended = -1, nil

local function add(named, object, type, relation, distance, from)
  if far[named] then return end
  walked = walked + 1
  if walked > max_added then
    ended = 'too many'
    return
  end
  far[named], via[named], kind_of[named] = distance, from, type .. '#' .. relation
  found[#found + 1] = named
  for _, also in ipairs(rule_of(type, relation).makes or {}) do
    made[object .. '#' .. also] = true
    add(object .. '#' .. also, object, type, also, distance, named)
  end
end

local function add_above(from, from_kind, distance)
  local function take(named)
    local colon, hash = find(named, ':', 1, true), find(named, '#', 1, true)
    local type, relation = sub(named, 1, colon - 1), sub(named, hash + 1)
    local rule = rule_of(type, relation)
    if rule and rule.climbs and rule.names[from_kind] then
      add(named, sub(named, 1, hash - 1), type, relation, distance, from)
    end
  end
  for _, type in ipairs(above[from_kind] or {}) do
    local most = math.floor(math.min(max_climb - climbed, max_work - worked))
    local list = {}
    if most > 0 then
      local from_type, to_type = '[' .. type .. ':', '(' .. type .. ';'
      list = call('ZRANGEBYLEX', subjects .. from, from_type, to_type, 'LIMIT', 0, most)
    end
    climbed, worked = climbed + 1 + #list, worked + 1 + #list
    if #list >= most then ended = 'too many' end
    for _, named in ipairs(list) do take(named) end
  end
  for _, named in ipairs(extra_above and extra_above[from] or {}) do take(named) end
end

-- Reads one more level.
local function climb()
  if expanded == -1 then
    expanded = 0
    add_above(subject, kind, 0)
    if wildcard then add_above(wildcard, wildcard, 0) end
    if hash then
      local object, type = sub(subject, 1, hash - 1), sub(subject, 1, colon - 1)
      local rule = rule_of(type, sub(subject, hash + 1))
      for _, also in ipairs(rule and rule.makes or {}) do
        made[object .. '#' .. also] = true
        add(object .. '#' .. also, object, type, also, 0, subject)
      end
    end
  else
    local from, to = expanded + 1, #found
    expanded = to
    for index = from, to do
      local named = found[index]
      add_above(named, kind_of[named], far[named] + 1)
      if ended then return end
    end
  end
  if expanded == #found then ended = ended or 'all' end
end

-- Returns the memberships, starting at index `from`, that the tuples of a relation name; nil: more than
-- the work limit permits. Reads all tuples of the relation if they are fewer than many memberships.
local function named_of(key, rule, from)
  local named = {}
  if #found - from >= MANY then
    worked = worked + 1
    if call('ZCARD', key) <= #found - from then
      local list, is_cut = members(key)
      if is_cut then return nil end
      for _, one in ipairs(list) do
        if far[one] and rule.members[kind_of[one]] then named[#named + 1] = one end
      end
      return named
    end
  end
  local candidates, also = {}, extra and extra[key] or {}
  walked = walked + (#found - from) / MANY
  for index = from, #found do
    if rule.members[kind_of[found[index]]] then candidates[#candidates + 1] = found[index] end
  end
  if #candidates == 0 then return named end
  if #candidates > max_work - worked then return nil end
  worked = worked + 1 + #candidates
  local scores = call('ZMSCORE', key, unpack(candidates))
  for index, one in ipairs(candidates) do
    if scores[index] or also[one] then named[#named + 1] = one end
  end
  return named
end

local prove
-- Looks up, in one call for each level, which memberships the tuples of a relation name. Returns an
-- outcome, or nil if the subject has too many memberships; the caller then walks the usersets.
local function expand_members(at, rule, hops)
  local outcome, from = DENIED, 1
  if max_steps > 0 and parent > 0 then steps[parent][5] = 'by_subject' end
  while true do
    local named = named_of(usersets .. at, rule, from)
    if not named then return nil end
    for _, one in ipairs(named) do
      if hops + 1 + far[one] <= max_depth then
        if max_steps > 0 then prove(at, one) end
        return ALLOWED
      end
      outcome = DEPTH
    end
    if ended then return ended == 'all' and outcome or nil end
    if worked >= max_work then return WORK end
    from = #found + 1
    climb()
  end
end

-- Adds to the trace the tuples by which a membership leads to the subject.
prove = function(at, named)
  local rule, tuple, outer = 'userset', at .. '@' .. named, parent
  while via[named] do
    parent = trace(rule, named, tuple, ALLOWED)
    local from = via[named]
    if made[named] then
      rule, tuple = 'computed', nil
    elseif via[from] then
      rule, tuple = 'userset', named .. '@' .. from
    else
      trace('direct', named, named .. '@' .. from, ALLOWED)
    end
    named = from
  end
  parent = outer
end
