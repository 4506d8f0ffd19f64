/** The script that walks a tenant's tuples. See docs/decisions/0042. */
import type { RelationModel } from '../../relations/model.ts'
import { RELATION_CLIMB } from './relation-script-climb.ts'
import { modelInLua } from './relation-script-model.ts'
import { RELATION_PARTS } from './relation-script-parts.ts'
import { RELATION_WALK } from './relation-script-walk.ts'

/**
 * No KEYS: names of keys are computed. ARGV as `ARGUMENTS` has it: prefixes of keys, the
 * version's key, what is asked, how many tuples may be followed one after the other, how much may be
 * looked at, how many steps are told (0: none), the version that is asked for (for the caller, who
 * compares), and of each contextual tuple `object#relation` and its subject.
 *
 * Returns the outcome, the version (text; empty: none), how much was looked at, and the steps: of
 * each the step that it belongs to, the rule, `object#relation`, a tuple or nothing, a note or
 * nothing, and the outcome.
 */
export const relationScript = (model: RelationModel): string =>
  `${modelInLua(model)}${RELATION_WALK}${RELATION_CLIMB}${RELATION_PARTS}${ANSWER}`

const ANSWER = `
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
`
