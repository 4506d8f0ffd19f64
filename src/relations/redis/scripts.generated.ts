/** Generated from the `.lua` files of this folder by `npm run lua`. Do not edit. */

export const MODEL = `
local function place_of(kind)
  local _, before = string.find(places, '|' .. kind .. '=', 1, true)
  return before and tonumber(string.match(places, '^%d+', before + 1))
end
local function reaches(rule, place)
  if not place then return false end
  local digit = math.floor(place / 4) + 1
  local bits = tonumber(string.sub(rule.reach, digit, digit), 16) or 0
  return math.floor(bits / 2 ^ (place % 4)) % 2 == 1
end
`

export const WALK = `
local DENIED, ALLOWED, NEGATED, DEPTH, WORK = 0, 1, 2, 3, 4
local call, find, sub, unpack = redis.call, string.find, string.sub, unpack
local tuples, usersets, subject = ARGV[1], ARGV[2], ARGV[6]
local max_depth, max_work, max_steps = ARGV[7] + 0, ARGV[8] + 0, ARGV[9] + 0
local worked, walked, max_walked, level = 0, 0, max_work * 4, 0
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
local extra, extra_above
for index = 12, #ARGV, 2 do
  local at, named = ARGV[index], ARGV[index + 1]
  local key = (find(named, '#', 1, true) and usersets or tuples) .. at
  extra, extra_above = extra or {}, extra_above or {}
  extra[key], extra_above[named] = extra[key] or {}, extra_above[named] or {}
  extra[key][named] = true
  extra_above[named][#extra_above[named] + 1] = at
end
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
local lists, cut = {}, {}
local function members(key)
  local list = lists[key]
  if not list then
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
local steps, truncated, parent = {}, 0, 0
local function open(rule, at, tuple, note)
  if #steps >= max_steps then
    truncated = 1
    return 0
  end
  steps[#steps + 1] = { parent, rule, at, tuple or '', note or '', -1 }
  return #steps
end
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
`

export const CLIMB = `
local subjects = ARGV[11]
local max_climb, max_added = max_work * 0.4, max_walked * 0.4
local climbed, found, kind_of, far, via, made = 0, {}, {}, {}, {}, {}
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
local function named_of(key, rule, from)
  local named = {}
  if #found - from >= 16 then
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
  walked = walked + (#found - from) / 16
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
`

export const PARTS = `
local kinds = {}
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
  if less == DENIED and less_cell then less = NEGATED end
  local outcome = less == DENIED and base or less > base and less or base
  return outcome, lower(base_cell, less_cell)
end
`

export const CHECK_SCRIPT = /* @__PURE__ */ [MODEL, WALK, CLIMB, PARTS, `
local RULES = { look = 'direct', expand = 'userset', tupleset = 'tuple_to_userset' }
local function plain(part, at, object, type, rule, hops)
  return kinds[part[1]](part, at, object, type, rule, hops)
end
local function traced(part, at, object, type, rule, hops)
  if part[1] == 'computed' then return plain(part, at, object, type, rule, hops) end
  local step, outer = open(RULES[part[1]] or part[1], at), parent
  parent = step
  local outcome, cell = plain(part, at, object, type, rule, hops)
  parent = outer
  if step > 0 then
    steps[step][6] = outcome
    if part[1] == 'look' and outcome == ALLOWED then steps[step][4] = at .. '@' .. named_as end
  end
  return outcome, cell
end
evaluate = max_steps > 0 and traced or plain
local object, relation = ARGV[4], ARGV[5]
local type = sub(object, 1, find(object, ':', 1, true) - 1)
local outcome = walk(object .. '#' .. relation, object, type, relation, 0, 'relation')
return { outcome, call('GET', ARGV[3]) or '', worked, truncated, steps }
`].join('')

export const READ_TUPLES_SCRIPT = `
local most, found, read = tonumber(ARGV[3]), {}, 0
local function take(key, from)
  local left = most - #found / 2
  if left == 0 then return end
  local members = redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, left)
  return members
end
local function append(node, members)
  for _, member in ipairs(members or {}) do
    found[#found + 1] = node
    found[#found + 1] = member
  end
end
for at, index in ipairs(KEYS) do
  local from, to, count = ARGV[4 + 2 * at], ARGV[5 + 2 * at], most
  while count == most and #found < 2 * most do
    local nodes = redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, most)
    count = #nodes
    for _, node in ipairs(nodes) do
      read = read + 1
      if read > 1000 then return redis.error_reply('ERR an index without tuples') end
      local tuples, usersets = '-', '-'
      if node == ARGV[4] then
        local is_userset = string.find(ARGV[5], '#', 1, true)
        tuples = not is_userset and '(' .. ARGV[5]
        usersets = is_userset and '(' .. ARGV[5] or '-'
      end
      if tuples then append(node, take(ARGV[1] .. node, tuples)) end
      append(node, take(ARGV[2] .. node, usersets))
      from = '(' .. node
    end
  end
end
return found
`

export const WRITE_TUPLES_SCRIPT = `
local before = tonumber(redis.call('GET', KEYS[1]) or '0')
if not before or before < 0 or before > 9007199254740990 then
  return redis.error_reply('ERR not a version')
end
local changes = {}
for at = 5, #ARGV, 4 do
  local node, subject = ARGV[at + 1], ARGV[at + 3]
  local is_userset = string.find(subject, '#', 1, true)
  local change = {
    node = node,
    subject = subject,
    tuples = ARGV[is_userset and 2 or 1] .. node,
    others = ARGV[is_userset and 1 or 2] .. node,
    index = ARGV[3] .. ARGV[at + 2],
    subjects = ARGV[4] .. subject,
    deletes = ARGV[at] == '-'
  }
  redis.call('ZSCORE', change.tuples, subject)
  redis.call('ZSCORE', change.index, node)
  redis.call('ZSCORE', change.subjects, node)
  changes[#changes + 1] = change
end
local written, deleted = 0, 0
for _, change in ipairs(changes) do
  if change.deletes then
    deleted = deleted + redis.call('ZREM', change.tuples, change.subject)
    redis.call('ZREM', change.subjects, change.node)
    if redis.call('EXISTS', change.tuples) + redis.call('EXISTS', change.others) == 0 then
      redis.call('ZREM', change.index, change.node)
    end
  end
end
local time = redis.call('TIME')
local version = math.max(before + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('SET', KEYS[1], string.format('%.0f', version))
for _, change in ipairs(changes) do
  if not change.deletes then
    written = written + redis.call('ZADD', change.tuples, 0, change.subject)
    redis.call('ZADD', change.index, 0, change.node)
    redis.call('ZADD', change.subjects, 0, change.node)
  end
end
return { written, deleted, string.format('%.0f', version) }
`
