/** Generates the script that checks a relation over a tenant's tuples: a model, and `check.lua`. */

import { CHECK_SCRIPT } from '../../../redis/scripts.generated.ts'
import { alternativesOf, findMemberships } from '../memberships.ts'
import { kindOf, type RelationDefinition, type RelationModel, type Userset } from '../model.ts'
import { computeReach } from '../reach.ts'
import { RELATION_NAME } from '../tuple.ts'

/** `check.lua` describes the arguments and the result. */
export const relationScript = (model: RelationModel): string => modelInLua(model) + CHECK_SCRIPT

/**
 * Returns a model as Lua source. `types` maps each type to a function that takes the name of a
 * relation and returns its table, or nil. So the script builds only the relations that a check
 * reaches. The table of a relation has these fields:
 *
 * - `names`: the kinds of subjects that its tuples may name.
 * - `into`: type and relation of each userset among them, and `members`: the kinds among them that
 *   are memberships (see `findMemberships`). Both are absent if there are no usersets.
 * - `reach`: the set of kinds from `computeReach`, in hexadecimal digits of four kinds each, lowest
 *   first.
 * - `climbs`: set if the relation is a membership that tuples give.
 * - `makes`: the memberships of the same object that are computed from this relation. Absent if
 *   there are none.
 * - `parts`: the definition, a part.
 *
 * A part is a table of its kind and its operands:
 *
 * - `look`: tuples name the subject itself.
 * - `expand`: tuples name usersets that contain the subject.
 * - `computed`, and a relation.
 * - `tupleset`, and two relations.
 * - `union` or `intersection`, and their parts.
 * - `exclusion`, and two parts.
 *
 * `places` lists the bit position of each kind, as `|kind=place`, in one string. `above` maps a
 * kind of subject to the types with memberships that tuples may give to it.
 *
 * Throws `TypeError` for an invalid name. The script quotes nothing but names.
 */
function modelInLua(model: RelationModel): string {
  const { places, kindsOf } = computeReach(model)
  const memberships = findMemberships(model)
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
          const named = kindOf(direct)
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
`
}

function fieldsOf(
  { userset, directTypes }: RelationDefinition,
  memberships: ReadonlySet<string>,
): string[] {
  const usersets = directTypes.flatMap((direct) => (direct.kind === 'userset' ? [direct] : []))
  const fields = [
    `names=${setInLua(directTypes.map(kindOf))}`,
    `parts=${partInLua(userset, usersets.length > 0)}`,
  ]
  if (usersets.length > 0) {
    const into = usersets.map(({ type, relation }) => `{${quoted(type)},${quoted(relation)}}`)
    const members = usersets.map(kindOf).filter((kind) => memberships.has(kind))
    fields.push(`into={${into}}`, `members=${setInLua(members)}`)
  }
  return fields
}

const LOOK = 'LOOK'
const EXPAND = 'EXPAND'
/** Order of evaluation, cheapest first: a cheap part may decide alone. */
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
  if (!RELATION_NAME.test(name))
    throw new TypeError(`relations: invalid name "${name}" in the model`)
  return `'${name}'`
}

/** Throws `TypeError` if a kind of subjects, in the form of `kindOf`, contains an invalid name. */
function checked(kind: string): string {
  const names = kind.endsWith(':*') ? [kind.slice(0, -2)] : kind.split('#')
  if (names.length <= 2) for (const name of names) quoted(name)
  else throw new TypeError(`relations: invalid kind of subjects "${kind}" in the model`)
  return kind
}
