--@include climb.lua

--- Evaluates the parts of a relation's definition.
--
-- Each function takes a part, the relation that contains it, and the number of tuples in the chain so
-- far. `at` is that relation as `object#relation`; its object, type and rule follow. A function returns
-- an outcome and the cell that the outcome depends on (see `walk.lua`). Outcomes are three-valued:
-- allowed, denied, and several kinds of unknown.

local kinds = {}

-- The subject that the last tuple named: the subject itself or its wildcard; nil: none.
local named_as
function kinds.look(part, at, object, type, rule, hops)
  local one, all = rule.names[kind], wildcard and rule.names[wildcard]
  if not one and not all then return DENIED end
  local key = subject_set .. at
  local also = extra and extra[key]
  named_as = also and (one and also[subject] and subject or all and also[wildcard] and wildcard)
  if named_as then return ALLOWED end
  if worked >= max_work then return WORK end
  worked = worked + 1
  if one and all then
    local found = call('ZMSCORE', key, subject, wildcard)
    named_as = found[1] and subject or found[2] and wildcard
  else
    named_as = one and subject or wildcard
    if not call('ZSCORE', key, named_as) then return DENIED end
  end
  return named_as and ALLOWED or DENIED
end

-- Combines the outcomes of alternatives: allowed if any of them is.
local function any(outcome, hangs_on, one, cell)
  if one == ALLOWED then return ALLOWED end
  return one > outcome and one or outcome, lower(hangs_on, cell)
end

function kinds.expand(part, at, object, type, rule, hops)
  local by_subject, by_walking = false, false
  for _, into in ipairs(rule.into) do
    local next_rule = rule_of(into[1], into[2])
    if next_rule and next_rule.reached then
      local is_member = ended ~= 'too many' and rule.members[into[1] .. '#' .. into[2]]
      by_subject, by_walking = by_subject or is_member, by_walking or not is_member
    end
  end
  local outcome, hangs_on = DENIED, nil
  if by_subject then
    outcome = expand_members(at, rule, hops)
    if outcome == ALLOWED then return ALLOWED end
    if not outcome then by_subject, by_walking, outcome = false, true, DENIED end
  end
  if not by_walking then return outcome end
  local list, is_cut = members(usersets .. at)
  if is_cut then outcome = WORK end
  for _, named in ipairs(list) do
    local colon, hash = find(named, ':', 1, true), find(named, '#', 1, true)
    local into, relation = sub(named, 1, colon - 1), sub(named, hash + 1)
    local into_kind = into .. '#' .. relation
    if rule.names[into_kind] and not (by_subject and rule.members[into_kind]) then
      local one, cell = DEPTH, nil
      if hops < max_depth then
        local tuple = max_steps > 0 and at .. '@' .. named
        one, cell = walk(named, sub(named, 1, hash - 1), into, relation, hops + 1, 'userset', tuple)
      end
      outcome, hangs_on = any(outcome, hangs_on, one, cell)
      if outcome == ALLOWED then return ALLOWED end
    end
  end
  return outcome, hangs_on
end

function kinds.tupleset(part, at, object, type, rule, hops)
  local tupleset, computed = part[2], part[3]
  local names = rule_of(type, tupleset).names
  local from = object .. '#' .. tupleset
  local list, is_cut = members(tuples .. from)
  local outcome, hangs_on = is_cut and WORK or DENIED, nil
  for _, named in ipairs(list) do
    local colon = find(named, ':', 1, true)
    local into = sub(named, 1, colon - 1)
    if names[into] and sub(named, colon + 1) ~= '*' and rule_of(into, computed) then
      local one, cell = DEPTH, nil
      if hops < max_depth then
        local tuple = max_steps > 0 and from .. '@' .. named
        one, cell =
          walk(named .. '#' .. computed, named, into, computed, hops + 1, 'tuple_to_userset', tuple)
      end
      outcome, hangs_on = any(outcome, hangs_on, one, cell)
      if outcome == ALLOWED then return ALLOWED end
    end
  end
  return outcome, hangs_on
end

function kinds.computed(part, at, object, type, rule, hops)
  return walk(object .. '#' .. part[2], object, type, part[2], hops, 'computed')
end

function kinds.union(part, at, object, type, rule, hops)
  local outcome, hangs_on = DENIED, nil
  for index = 2, #part do
    local one, cell = evaluate(part[index], at, object, type, rule, hops)
    outcome, hangs_on = any(outcome, hangs_on, one, cell)
    if outcome == ALLOWED then return ALLOWED end
  end
  return outcome, hangs_on
end

-- Of several denials, returns the one that depends on the innermost cell.
function kinds.intersection(part, at, object, type, rule, hops)
  local outcome, hangs_on, denied, denied_by = ALLOWED, nil, false, nil
  for index = 2, #part do
    local one, cell = evaluate(part[index], at, object, type, rule, hops)
    if one == DENIED then
      if not cell then return DENIED end
      denied_by = denied and higher(denied_by, cell) or cell
      denied = true
    elseif one ~= ALLOWED then
      outcome, hangs_on = one > outcome and one or outcome, lower(hangs_on, cell)
    end
  end
  if denied then return DENIED, denied_by end
  return outcome, hangs_on
end

function kinds.exclusion(part, at, object, type, rule, hops)
  local base, base_cell = evaluate(part[2], at, object, type, rule, hops)
  if base == DENIED and not base_cell then return DENIED end
  local less, less_cell = evaluate(part[3], at, object, type, rule, hops)
  if less == ALLOWED then return DENIED end
  if base == DENIED then return DENIED, base_cell end
  -- The denial only holds because of an assumption about a relation that contains this one.
  if less == DENIED and less_cell then less = NEGATED end
  local outcome = less == DENIED and base or less > base and less or base
  return outcome, lower(base_cell, less_cell)
end
