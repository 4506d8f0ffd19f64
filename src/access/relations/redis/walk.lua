--@include model.lua

--- Walks a tenant's tuples: the query, the reads, and the memoized outcomes.
--
-- `walk` evaluates one relation of one object. It returns an outcome and the cell that the outcome
-- depends on.
--
-- A *cell* belongs to a relation that is under evaluation. When the walk returns to that relation, it
-- assumes a denial there and records the dependency. An outcome depends on the cell of the outermost
-- such relation, or on nil.
--
-- The evaluation of the relation settles its cell. If the relation is denied, the denials that depend
-- on the cell are final, or depend on the cell that the relation itself depends on. All other outcomes
-- that depend on the cell are dropped. So the walk does not evaluate the relations of a cycle again
-- and again.

-- Number of steps without a call to Redis that the script may take for each unit of work. All steps
-- together then take about as long as all calls.
local STEPS = 4 --@inline

-- The outcomes, as in `check.ts`. Of several unknown outcomes, the highest is returned.
local DENIED, ALLOWED, NEGATED, DEPTH, WORK = 0, 1, 2, 3, 4
local call, find, sub, unpack = redis.call, string.find, string.sub, unpack
local tuples, usersets, subject = ARGV[1], ARGV[2], ARGV[6]
local max_depth, max_work, max_steps = ARGV[7] + 0, ARGV[8] + 0, ARGV[9] + 0
local worked, walked, max_walked, level = 0, 0, max_work * STEPS, 0
-- The kind of the subject, the wildcard that includes it, and the prefix of sets that can name it.
local kind, wildcard
local subject_set = tuples
local colon, hash = find(subject, ':', 1, true), find(subject, '#', 1, true)
if hash then
  kind, subject_set = sub(subject, 1, colon - 1) .. sub(subject, hash), usersets
elseif sub(subject, colon + 1) == '*' then
  kind = subject
else
  kind = sub(subject, 1, colon - 1)
  wildcard = kind .. ':*'
end

local place = place_of(kind)

-- Contextual tuples: their subjects by key, and their nodes by subject.
local extra, extra_above
for index = 12, #ARGV, 2 do
  local at, named = ARGV[index], ARGV[index + 1]
  local key = (find(named, '#', 1, true) and usersets or tuples) .. at
  extra, extra_above = extra or {}, extra_above or {}
  extra[key], extra_above[named] = extra[key] or {}, extra_above[named] or {}
  extra[key][named] = true
  extra_above[named][#extra_above[named] + 1] = at
end

-- Relations by type and name; false: the model has no such relation.
local relations = {}
local function rule_of(type, relation)
  local of = relations[type]
  if not of then
    of = {}
    relations[type] = of
  end
  local rule = of[relation]
  if rule == nil then
    local make = types[type]
    rule = make and make(relation) or false
    if rule then rule.reached = reaches(rule, place) end
    of[relation] = rule
  end
  return rule
end

-- Returns the members of a set, as many as the work limit still permits, and whether there are more.
local lists, cut = {}, {}
local function members(key)
  local list = lists[key]
  if not list then
    -- Never below 0: Redis counts a negative end from the end of the set.
    local most = math.max(max_work - worked - 1, 0)
    worked = worked + 1
    list = call('ZRANGE', key, 0, most)
    if #list > most then
      list[#list] = nil
      cut[key] = true
    end
    for named in pairs(extra and extra[key] or {}) do list[#list + 1] = named end
    lists[key] = list
  elseif #list > max_work - worked then
    return {}, true
  end
  worked = worked + #list
  return list, cut[key]
end

-- Outcomes by node; the levels of the nodes under evaluation; and the cells by level.
local known, on_stack, cells = {}, {}, {}
local function root_of(cell)
  while cell.up do cell = cell.up end
  return cell
end
local function lower(a, b)
  if not a or b and b.level < a.level then return b end
  return a
end
local function higher(a, b)
  if not a or not b then return nil end
  return a.level < b.level and b or a
end

-- Adds a step to the trace. Returns its index, or 0 if the trace is full.
local steps, truncated, parent = {}, 0, 0
local function open(rule, at, tuple, note)
  if #steps >= max_steps then
    truncated = 1
    return 0
  end
  steps[#steps + 1] = { parent, rule, at, tuple or '', note or '', -1 }
  return #steps
end
-- Adds a step with its outcome.
local function trace(rule, at, tuple, outcome, note)
  local step = open(rule, at, tuple, note)
  if step > 0 then steps[step][6] = outcome end
  return step
end

local evaluate
local function walk(at, object, type, relation, hops, rule_name, tuple)
  walked = walked + 1
  local rule = rule_of(type, relation)
  local note
  local outcome, hangs_on
  if rule and at == subject then
    note, outcome = 'self', ALLOWED
  elseif not rule or not rule.reached then
    note, outcome = 'not_in_model', DENIED
  elseif on_stack[at] then
    local there = on_stack[at]
    hangs_on = cells[there]
    if not hangs_on then
      hangs_on = { level = there }
      cells[there] = hangs_on
    end
    note, outcome = 'cycle', DENIED
  else
    local before = known[at]
    if before then
      local cell = before.cell
      if cell then cell = root_of(cell) end
      if not cell or not cell.over then
        if before.outcome ~= DEPTH or hops >= before.hops then
          note, outcome, hangs_on = 'seen', before.outcome, cell
        end
      elseif cell.over == DENIED and before.outcome == DENIED then
        note, outcome = 'seen', DENIED
      end
    end
  end
  if not note and (worked >= max_work or walked > max_walked) then outcome = WORK end
  if outcome then
    if max_steps > 0 then trace(rule_name, at, tuple, outcome, note) end
    return outcome, hangs_on
  end

  level = level + 1
  local here = level
  on_stack[at], cells[here] = here, nil
  local step, outer = 0, parent
  if max_steps > 0 then
    step = open(rule_name, at, tuple)
    parent = step
  end
  outcome, hangs_on = evaluate(rule.parts, at, object, type, rule, hops)
  if max_steps > 0 then
    parent = outer
    if step > 0 then steps[step][6] = outcome end
  end
  local cell = cells[here]
  on_stack[at], level = nil, here - 1
  if hangs_on == cell then hangs_on = nil end
  if cell then
    if outcome == DENIED and hangs_on then
      cell.up = hangs_on
    else
      cell.over = outcome
    end
  end
  known[at] = { outcome = outcome, cell = hangs_on, hops = hops }
  return outcome, hangs_on
end
