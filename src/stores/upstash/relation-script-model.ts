/** A model as Lua: what the script of a check looks up. */

import { membershipsOf, partsOf } from '../../relations/memberships.ts'
import type {
  DirectType,
  RelationDefinition,
  RelationModel,
  Userset,
} from '../../relations/model.ts'
import { kindOf, reachOf } from '../../relations/reach.ts'
import { RELATION_NAME } from '../../relations/tuple.ts'

/**
 * Two Lua tables. `types` has a function by type, which makes a relation of its name, or nil: only
 * what a check meets is built. A relation is
 *
 * - `names`: kinds of subjects that its tuples may name;
 * - `into`: types and relations of usersets among them, and `members`: kinds of those that are
 *   memberships (see `membershipsOf`), or none;
 * - `reach`: kinds as `reachOf` has them, each between bars in one text;
 * - `climbs`: it is a membership that tuples give, and `makes`: memberships of the same object that
 *   whoever has it has, or none;
 * - `parts`. A part is a table of its kind and what belongs to it: `look` (is the subject itself
 *   named), `expand` (do usersets that are named have it), `computed` and a relation, `tupleset` and
 *   two, `union` and `intersection` and parts, `exclusion` and two parts.
 *
 * `above` has by kind of subject the types whose memberships tuples may give it.
 *
 * Throws `TypeError` where a name is none: nothing else is ever quoted.
 */
export function modelInLua(model: RelationModel): string {
  const reach = reachOf(model)
  const memberships = membershipsOf(model)
  const above = new Map<string, Set<string>>()
  const types = [...model.types].map(([type, relations]) => {
    const of = [...relations].map(([relation, definition]) => {
      const kind = `${type}#${relation}`
      const fields = [
        ...fieldsOf(definition, memberships),
        `reach='${barred(reach.get(kind) ?? [])}'`,
      ]
      const isGiven = partsOf(definition.userset).some((part) => part.kind === 'direct')
      if (memberships.has(kind) && isGiven) {
        fields.push('climbs=1')
        for (const direct of definition.directTypes) {
          const named = kindOfDirect(direct)
          above.set(named, (above.get(named) ?? new Set()).add(type))
        }
      }
      const makes = [...relations].flatMap(([other, { userset }]) =>
        memberships.has(`${type}#${other}`) &&
        partsOf(userset).some((part) => part.kind === 'computed' && part.relation === relation)
          ? [quoted(other)]
          : [],
      )
      if (makes.length > 0) fields.push(`makes={${makes}}`)
      return `if r==${quoted(relation)} then return {${fields}} end`
    })
    return `[${quoted(type)}]=function(r) ${of.join('\n')} end`
  })
  const aboves = [...above].map(([kind, of]) => `['${checked(kind)}']={${[...of].map(quoted)}}`)
  return `local LOOK, EXPAND = {'look'}, {'expand'}\nlocal types = {${types.join(',\n')}}\nlocal above = {${aboves}}\n`
}

function fieldsOf(
  { userset, directTypes }: RelationDefinition,
  memberships: ReadonlySet<string>,
): string[] {
  const usersets = directTypes.flatMap((direct) => (direct.kind === 'userset' ? [direct] : []))
  const fields = [
    `names=${setInLua(directTypes.map(kindOfDirect))}`,
    `parts=${partInLua(userset, usersets.length > 0)}`,
  ]
  if (usersets.length > 0) {
    const into = usersets.map(({ type, relation }) => `{${quoted(type)},${quoted(relation)}}`)
    const members = usersets.map(kindOfDirect).filter((kind) => memberships.has(kind))
    fields.push(`into={${into}}`, `members=${setInLua(members)}`)
  }
  return fields
}

const kindOfDirect = (direct: DirectType): string =>
  kindOf({
    type: direct.type,
    relation: direct.kind === 'userset' ? direct.relation : undefined,
    ...(direct.kind === 'wildcard' && { id: '*' }),
  })

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
    case 'union':
      return `{'union',${cheapFirst(partsOf(userset).flatMap((part) => (part.kind === 'direct' && hasUsersets ? [LOOK, EXPAND] : [of(part)])))}}`
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

const barred = (kinds: Iterable<string>): string => `|${[...kinds].map(checked).join('|')}|`

const setInLua = (kinds: Iterable<string>): string =>
  `{${[...kinds].map((kind) => `['${checked(kind)}']=1`).join(',')}}`

function quoted(name: string): string {
  if (!RELATION_NAME.test(name)) throw new TypeError('relations: the model has a name that is none')
  return `'${name}'`
}

/** A kind of subjects, as `kindOf` writes it. */
function checked(kind: string): string {
  const names = kind.endsWith(':*') ? [kind.slice(0, -2)] : kind.split('#')
  if (names.length <= 2) for (const name of names) quoted(name)
  else throw new TypeError('relations: the model has a kind that is none')
  return kind
}
