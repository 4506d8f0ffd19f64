/** A model as Lua: what the script of a check looks up. */
import type {
  DirectType,
  RelationDefinition,
  RelationModel,
  Userset,
} from '../../relations/model.ts'
import { kindOf, reachOf } from '../../relations/reach.ts'
import { RELATION_NAME } from '../../relations/tuple.ts'

/**
 * A Lua table of functions by type, each of which makes the table of its relations: only the types
 * that a check meets are built. A relation is `names` (kinds of subjects that its tuples may name),
 * `into` (types and relations of usersets among them, or none), `reach` (see `reachOf`), and
 * `parts`. A part is a table of its kind and what belongs to it: `look` (is the subject itself
 * named), `expand` (do usersets that are named have it), `computed` and a relation, `tupleset` and
 * two, `union` and `intersection` and parts, `exclusion` and two parts.
 *
 * Throws `TypeError` where a name is none: nothing else is ever quoted.
 */
export function modelInLua(model: RelationModel): string {
  const reach = reachOf(model)
  const types = [...model.types].map(([type, relations]) => {
    const of = [...relations].map(([relation, definition]) => {
      const kinds = reach.get(`${type}#${relation}`) ?? new Set()
      return `[${quoted(relation)}]={${definitionInLua(definition)},reach=${setInLua(kinds)}}`
    })
    return `[${quoted(type)}]=function() return {${of.join(',')}} end`
  })
  return `{${types.join(',\n')}}`
}

function definitionInLua({ userset, directTypes }: RelationDefinition): string {
  const into = directTypes.flatMap((direct) =>
    direct.kind === 'userset' ? [`{${quoted(direct.type)},${quoted(direct.relation)}}`] : [],
  )
  const names = setInLua(directTypes.map(kindOfDirect))
  const parts = partInLua(userset, into.length > 0)
  return `names=${names}${into.length > 0 ? `,into={${into.join(',')}}` : ''},parts=${parts}`
}

const kindOfDirect = (direct: DirectType): string =>
  kindOf({
    type: direct.type,
    relation: direct.kind === 'userset' ? direct.relation : undefined,
    ...(direct.kind === 'wildcard' && { id: '*' }),
  })

const LOOK = "{'look'}"
const EXPAND = "{'expand'}"
/** What is cheap comes first: it may decide. */
const COSTS = ["{'look'", "{'computed'", '', "{'expand'", "{'tupleset'"]

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
      return `{'union',${cheapFirst(flat(userset).flatMap((part) => (part.kind === 'direct' && hasUsersets ? [LOOK, EXPAND] : [of(part)])))}}`
    case 'intersection':
      return `{'intersection',${cheapFirst(userset.of.map(of))}}`
    case 'exclusion':
      return `{'exclusion',${of(userset.base)},${of(userset.subtract)}}`
    default:
      return userset satisfies never
  }
}

/** The parts of unions within a union are its own. */
const flat = (userset: Userset): readonly Userset[] =>
  userset.kind === 'union' ? userset.of.flatMap(flat) : [userset]

const costOf = (part: string): number => {
  const cost = COSTS.findIndex((kind) => kind !== '' && part.startsWith(kind))
  return cost === -1 ? COSTS.indexOf('') : cost
}

const cheapFirst = (parts: readonly string[]): string =>
  parts.toSorted((a, b) => costOf(a) - costOf(b)).join(',')

const setInLua = (kinds: Iterable<string>): string =>
  `{${[...kinds].map((kind) => `['${checked(kind)}']=1`).join(',')}}`

const quoted = (name: string): string => `'${checked(name)}'`

function checked(text: string): string {
  const [first = '', second] = text.endsWith(':*') ? [text.slice(0, -2)] : text.split('#')
  if (RELATION_NAME.test(first) && (second === undefined || RELATION_NAME.test(second))) return text
  throw new TypeError('relations: the model has a name that is none')
}
