/** A model as Lua: what the script of a check looks up. */
import { alternativesOf, membershipsOf } from '../../relations/memberships.ts'
import {
  formatDirectType,
  type RelationDefinition,
  type RelationModel,
  type Userset,
} from '../../relations/model.ts'
import { reachOf } from '../../relations/reach.ts'
import { RELATION_NAME } from '../../relations/tuple.ts'

/**
 * Lua. `types` has a function by type, which makes a relation of its name, or nil: only
 * what a check meets is built. A relation is
 *
 * - `names`: kinds of subjects that its tuples may name;
 * - `into`: types and relations of usersets among them, and `members`: kinds of those that are
 *   memberships (see `membershipsOf`), or none;
 * - `reach`: kinds as `reachOf` has them, a hexadecimal digit for four, the first four first;
 * - `climbs`: it is a membership that tuples give, and `makes`: memberships of the same object that
 *   whoever has it has, or none;
 * - `parts`. A part is a table of its kind and what belongs to it: `look` (is the subject itself
 *   named), `expand` (do usersets that are named have it), `computed` and a relation, `tupleset` and
 *   two, `union` and `intersection` and parts, `exclusion` and two parts.
 *
 * `places` has the place of each kind, as `|kind=place`, in one text.
 *
 * `above` has by kind of subject the types whose memberships tuples may give it.
 *
 * Throws `TypeError` where a name is none: nothing else is ever quoted.
 */
export function modelInLua(model: RelationModel): string {
  const { places, kindsOf } = reachOf(model)
  const memberships = membershipsOf(model)
  const above = new Map<string, Set<string>>()
  const types = [...model.types].map(([type, relations]) => {
    const of = [...relations].map(([relation, definition]) => {
      const kind = `${type}#${relation}`
      const fields = [
        ...fieldsOf(definition, memberships),
        `reach='${digitsOf(kindsOf.get(kind) ?? 0n)}'`,
      ]
      const isGiven = alternativesOf(definition.userset).some((part) => part.kind === 'direct')
      if (memberships.has(kind) && isGiven) {
        fields.push('climbs=1')
        for (const direct of definition.directTypes) {
          const named = formatDirectType(direct)
          above.set(named, (above.get(named) ?? new Set()).add(type))
        }
      }
      const makes = [...relations].flatMap(([other, { userset }]) =>
        memberships.has(`${type}#${other}`) &&
        alternativesOf(userset).some(
          (part) => part.kind === 'computed' && part.relation === relation,
        )
          ? [quoted(other)]
          : [],
      )
      if (makes.length > 0) fields.push(`makes={${makes}}`)
      return `if r==${quoted(relation)} then return {${fields}} end`
    })
    return `[${quoted(type)}]=function(r) ${of.join('\n')} end`
  })
  const aboves = [...above].map(([kind, of]) => `['${checked(kind)}']={${[...of].map(quoted)}}`)
  const numbered = [...places].map(([kind, place]) => `${checked(kind)}=${place}|`).join('')
  return `local LOOK, EXPAND = {'look'}, {'expand'}
local types = {${types.join(',\n')}}
local above = {${aboves}}
local places = '|${numbered}'
${REACHES}`
}

const REACHES = `
-- Of a kind of subjects; nil: the model has no such kind.
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

function fieldsOf(
  { userset, directTypes }: RelationDefinition,
  memberships: ReadonlySet<string>,
): string[] {
  const usersets = directTypes.flatMap((direct) => (direct.kind === 'userset' ? [direct] : []))
  const fields = [
    `names=${setInLua(directTypes.map(formatDirectType))}`,
    `parts=${partInLua(userset, usersets.length > 0)}`,
  ]
  if (usersets.length > 0) {
    const into = usersets.map(({ type, relation }) => `{${quoted(type)},${quoted(relation)}}`)
    const members = usersets.map(formatDirectType).filter((kind) => memberships.has(kind))
    fields.push(`into={${into}}`, `members=${setInLua(members)}`)
  }
  return fields
}

const LOOK = 'LOOK'
const EXPAND = 'EXPAND'
/** What is cheap comes first: it may decide. */
const COSTS = [LOOK, "{'computed'", '', EXPAND, "{'tupleset'"]

function partInLua(userset: Userset, hasUsersets: boolean): string {
  const of = (part: Userset) => partInLua(part, hasUsersets)
  switch (userset.kind) {
    case 'direct':
      return hasUsersets ? `{'union',${LOOK},${EXPAND}}` : LOOK
    case 'computed':
      return `{'computed',${quoted(userset.relation)}}`
    case 'tuple_to_userset':
      return `{'tupleset',${quoted(userset.tupleset)},${quoted(userset.computed)}}`
    case 'union': {
      const parts = alternativesOf(userset).flatMap((part) =>
        part.kind === 'direct' && hasUsersets ? [LOOK, EXPAND] : [of(part)],
      )
      return `{'union',${cheapFirst(parts)}}`
    }
    case 'intersection':
      return `{'intersection',${cheapFirst(userset.of.map(of))}}`
    case 'exclusion':
      return `{'exclusion',${of(userset.base)},${of(userset.subtract)}}`
    default:
      return userset satisfies never
  }
}

const costOf = (part: string): number => {
  const cost = COSTS.findIndex((kind) => kind !== '' && part.startsWith(kind))
  return cost === -1 ? COSTS.indexOf('') : cost
}

const cheapFirst = (parts: readonly string[]): string =>
  parts.toSorted((a, b) => costOf(a) - costOf(b)).join(',')

const digitsOf = (kinds: bigint): string => [...kinds.toString(16)].reverse().join('')

const setInLua = (kinds: Iterable<string>): string =>
  `{${[...kinds].map((kind) => `['${checked(kind)}']=1`).join(',')}}`

function quoted(name: string): string {
  if (!RELATION_NAME.test(name)) throw new TypeError('relations: the model has a name that is none')
  return `'${name}'`
}

/** A kind of subjects, as `formatDirectType` writes it. */
function checked(kind: string): string {
  const names = kind.endsWith(':*') ? [kind.slice(0, -2)] : kind.split('#')
  if (names.length <= 2) for (const name of names) quoted(name)
  else throw new TypeError('relations: the model has a kind that is none')
  return kind
}
