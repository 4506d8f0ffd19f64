--- Checks a relation over a tenant's tuples. See docs/decisions/0042. The model, as `script.ts`
-- generates it, is in front of this text.
--
-- No KEYS, because the script computes the names of keys. ARGV:
--
-- 1. to 3. The prefixes of tuples and usersets, and the key of the version.
-- 4. to 6. Object, relation and subject of the query.
-- 7. to 9. The limits for depth, work and trace steps (0: no trace).
-- 10. The required version, which only the caller compares.
-- 11. The prefix of the index of subjects.
-- 12. and following: `object#relation` and subject of each contextual tuple.
--
-- Returns the outcome, the version (text; empty if there is none), the work, whether the trace is
-- truncated, and the trace steps. A step is a list: the index of the parent step, the rule,
-- `object#relation`, the tuple or '', the note or '', and the outcome.

--@include parts.lua

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
