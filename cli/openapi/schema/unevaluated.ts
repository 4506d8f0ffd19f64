/** Code for `unevaluatedProperties`: members that neither the schema nor its parts name. */
import { type Code, call, checked, list, literal, object } from '../code.ts'
import type { Document } from '../document.ts'
import { at, isObject, type JsonObject, type Located } from '../located.ts'
import type { SchemaContext } from './context.ts'
import { expressionCode } from './scalars.ts'
import { partsOf } from './types.ts'

const KEYWORD = 'unevaluatedProperties'
/** Parts that name members only of the values that match them. */
const CONDITIONAL = ['anyOf', 'oneOf'] as const
const BRANCHES = ['if', 'then', 'else'] as const

export interface Unevaluated {
  readonly keyword: typeof KEYWORD
  /** Undefined if every member is allowed. */
  readonly code: Code | undefined
}

/** What a schema and its parts name. */
interface Named {
  readonly names: Set<string>
  readonly patterns: Set<string>
  /** Whether a part is about all members. */
  isOpen: boolean
  /** Whether the names depend on the value. */
  isConditional: boolean
  /** Whether a part cannot be read. */
  isUnknown: boolean
}

/** Returns undefined if there is no such keyword, or if it cannot be checked. */
export function unevaluatedCode(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
): Unevaluated | undefined {
  const { document, notes, use } = context
  const { unevaluatedProperties: others } = schema.value
  if (document.is30 || !(typeof others === 'boolean' || isObject(others))) return undefined
  const named = namedBy(document, schema)
  if (named.isUnknown) return undefined
  document.coverage.use(at(schema, KEYWORD))
  if (others === true || named.isOpen) {
    document.coverage.useAll(at(schema, KEYWORD))
    return { keyword: KEYWORD, code: undefined }
  }
  if (named.isConditional)
    notes.approximated(
      place,
      `${KEYWORD}: a member that another alternative names is accepted as well`,
    )
  const rest = others === false ? 'false' : context.code(at(schema, KEYWORD), `${place}/*`)
  const expressions = [...named.patterns].map((pattern) => expressionCode(context, pattern, place))
  const patterns = expressions.flatMap((expression) =>
    expression === undefined ? [] : [list([expression, `${use('json')}()`])],
  )
  // A pattern that is not used could allow any name.
  if (patterns.length < expressions.length) return { keyword: KEYWORD, code: undefined }
  const rules: [string, Code][] = []
  if (patterns.length > 0) rules.push(['patterns', list(patterns)])
  if (named.names.size > 0) rules.push(['known', list([...named.names].map(literal))])
  rules.push(['rest', rest])
  const closed = checked('z.looseObject({})', [call(use('members'), object(rules))])
  const isObjectOnly = schema.value.type === 'object'
  return {
    keyword: KEYWORD,
    code: isObjectOnly
      ? closed
      : call('z.union', list([closed, call(use('otherThan'), "'object'")])),
  }
}

function namedBy(document: Document, root: Located<JsonObject>): Named {
  const named: Named = {
    names: new Set(),
    patterns: new Set(),
    isOpen: false,
    isConditional: false,
    isUnknown: false,
  }
  const seen = new Set<unknown>()
  const visit = (part: Located, isRoot: boolean): void => {
    if (!isObject(part.value) || seen.has(part.value)) return
    seen.add(part.value)
    const { value } = part
    for (const name of Object.keys(isObject(value.properties) ? value.properties : {}))
      named.names.add(name)
    for (const name of Object.keys(
      isObject(value.patternProperties) ? value.patternProperties : {},
    ))
      named.patterns.add(name)
    if (value.additionalProperties !== undefined) named.isOpen = true
    if (!isRoot && value.unevaluatedProperties !== undefined) named.isOpen = true
    if (value.$dynamicRef !== undefined || value.dependentSchemas !== undefined)
      named.isUnknown = true
    if (value.$ref !== undefined) {
      const target = document.resolve({ ...part, value: { $ref: value.$ref } })
      if (target === undefined) named.isUnknown = true
      else visit(target, false)
    }
    for (const inner of partsOf(part, 'allOf')) visit(inner, false)
    for (const keyword of CONDITIONAL)
      for (const inner of partsOf(part, keyword)) {
        named.isConditional = true
        visit(inner, false)
      }
    for (const keyword of BRANCHES) {
      if (value.if === undefined || value[keyword] === undefined) continue
      named.isConditional = true
      visit(at(part, keyword), false)
    }
  }
  visit(root, true)
  return named
}
