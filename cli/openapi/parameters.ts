/** Code for the parameters of an operation, by the way in which a request contains them. */
import { createHeaderCheck } from '../../src/validators/request-header.ts'
import { type Code, call, list, object, quoted } from './code.ts'
import type { Document } from './document.ts'
import { at, isObject, type JsonObject, type Located } from './located.ts'
import type { SchemaContext } from './schema/context.ts'
import { useKeywords } from './schema/keywords.ts'
import { partsOf, possibleTypes, type SchemaType } from './schema/types.ts'
import type { PathParameter, PathPattern } from './template.ts'

export interface Parameter {
  readonly located: Located<JsonObject>
  readonly name: string
  readonly in: string
}

/** The shapes of `input`. Undefined: not checked. */
export interface ParameterCodes {
  readonly params?: Code
  readonly query?: Code
  readonly headers?: Code
}

type Member = readonly [name: string, value: Code]
interface Reader {
  readonly context: SchemaContext
  readonly place: string
}

/** Headers that are not parameters (OpenAPI 3, Parameter Object). */
const OTHER_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'authorization'])
const SEPARATORS: Readonly<Record<string, string>> = {
  form: ',',
  simple: ',',
  spaceDelimited: ' ',
  pipeDelimited: '|',
}
const mayReachOrigin = createHeaderCheck({})

/** Returns the parameters of path item and operation; those of the operation replace equal ones. */
export function parametersOf(
  { context, place }: Reader,
  pathItem: Located,
  operation: Located,
): readonly Parameter[] {
  const { document, notes } = context
  const found = new Map<string, Parameter>()
  for (const declared of [at(pathItem, 'parameters'), at(operation, 'parameters')]) {
    if (!Array.isArray(declared.value)) continue
    document.coverage.use(declared)
    const names = new Set<string>()
    for (const index of declared.value.keys()) {
      const target = document.follow(at(declared, index))
      const { value } = target ?? {}
      if (target === undefined || !isObject(value) || typeof value.name !== 'string') {
        document.coverage.useAll(at(declared, index))
        notes.unmapped(
          place,
          `parameter ${index + 1} of the list is not checked: it must be an object with a name, or a reference to one`,
        )
        continue
      }
      const where = String(value.in)
      const key = `${where} ${where === 'header' ? value.name.toLowerCase() : value.name}`
      const parameter = { located: { ...target, value }, name: value.name, in: where }
      useFields(document, parameter)
      if (names.has(key))
        notes.unmapped(
          place,
          `the list has the parameter ${key} more than once, and only the last one is used; remove the others`,
        )
      names.add(key)
      const replaced = found.get(key)
      if (replaced !== undefined) document.coverage.useAll(replaced.located)
      found.set(key, parameter)
    }
  }
  return [...found.values()]
}

const WHERE: ReadonlySet<string> = new Set(['path', 'query', 'header', 'cookie'])
/** Types of the fields that are read. A value of another type is no field, and gets a note. */
const FIELD_TYPES: Readonly<Record<string, string>> = {
  name: 'string',
  in: 'string',
  required: 'boolean',
  style: 'string',
  explode: 'boolean',
  allowEmptyValue: 'boolean',
}

function useFields({ coverage }: Document, { located }: Parameter): void {
  for (const [name, type] of Object.entries(FIELD_TYPES))
    if (typeof located.value[name] === type) coverage.use(at(located, name))
}

export function parameterCodes(
  reader: Reader,
  parameters: readonly Parameter[],
  { parameters: path, query: fixed }: PathPattern,
): ParameterCodes {
  const of = (where: string) => parameters.filter((parameter) => parameter.in === where)
  const { document, notes } = reader.context
  for (const { name, located } of of('cookie')) {
    document.coverage.useAll(located)
    notes.unmapped(
      reader.place,
      `cookie ${name} is not checked, and is not sent to the origin; list it in forwardCookies of the route to send it`,
    )
  }
  const elsewhere = parameters.filter((parameter) => !WHERE.has(parameter.in))
  for (const { name, located } of elsewhere) {
    document.coverage.useAll(located)
    notes.unmapped(
      reader.place,
      `parameter ${name} is in "${String(located.value.in)}" and is not checked: only path, query, header and cookie are imported`,
    )
  }
  const params = paramsCode(reader, of('path'), path)
  // `querystring` of OpenAPI 3.2 is the whole query.
  const query = elsewhere.some((parameter) => parameter.in === 'querystring')
    ? undefined
    : queryCode(reader, of('query'), fixed)
  const headers = headersCode(reader, of('header'))
  return { ...(params && { params }), ...(query && { query }), ...(headers && { headers }) }
}

function paramsCode(
  reader: Reader,
  declared: readonly Parameter[],
  path: readonly PathParameter[],
): Code | undefined {
  const { document, use, notes } = reader.context
  for (const { name, located } of declared) {
    if (path.some((part) => part.declared === name)) continue
    document.coverage.useAll(located)
    notes.unmapped(
      reader.place,
      `path parameter ${name} does not occur in the path, and is not checked; correct its name, or remove it`,
    )
  }
  if (path.length === 0) return undefined
  const members = path.map((part): Member => {
    if (part.declared === undefined) return [part.name, 'z.string()']
    const parameter = declared.find(({ name }) => name === part.declared)
    const code =
      parameter === undefined ? 'z.string()' : (textCodeOf(reader, parameter) ?? 'z.string()')
    if (part.prefix === '' && part.suffix === '') return [part.name, code]
    return [part.name, call(use('partText'), quoted(part.prefix), quoted(part.suffix), code)]
  })
  return call('z.strictObject', object(members))
}

function queryCode(
  reader: Reader,
  declared: readonly Parameter[],
  fixed: ReadonlyMap<string, string>,
): Code {
  const { notes } = reader.context
  const members: Member[] = []
  let isOpen = false
  for (const parameter of declared) {
    const { name } = parameter
    const style = parameter.located.value.style ?? 'form'
    const isDeep = style === 'deepObject'
    // Without `explode`, or with false, this style has no other meaning, and many documents omit it.
    const explode = isDeep || (parameter.located.value.explode ?? style === 'form')
    const types = typesOf(reader, parameter)
    if (types?.has('array') && explode === true && !isDeep) {
      members.push([name, optionalCode(parameter, repeatedCode(reader, parameter, types))])
      continue
    }
    if (types?.has('object') && explode === true) {
      const expanded = expandedMembers(reader, parameter, isDeep)
      isOpen ||= expanded?.isOpen ?? true
      if (expanded === undefined) {
        reader.context.document.coverage.useAll(parameter.located)
        notes.unmapped(
          reader.place,
          `query parameter ${name} is an object without a list of properties: its members are not checked, and cannot be repeated; declare its properties`,
        )
      } else members.push(...expanded.members)
      continue
    }
    members.push([name, optionalCode(parameter, textCodeOf(reader, parameter) ?? 'z.string()')])
  }
  if (isOpen)
    notes.approximated(
      reader.place,
      'unknown query parameters are accepted, because a query parameter is an object that allows additional properties',
    )
  for (const [name, value] of fixed) members.push([name, call('z.literal', quoted(value))])
  const unique = [...new Map(members)]
  return call(isOpen ? 'z.looseObject' : 'z.strictObject', object(unique))
}

/** Returns code for a parameter that a request may repeat: `a=1&a=2`. */
function repeatedCode(
  { context, place }: Reader,
  parameter: Parameter,
  types: ReadonlySet<SchemaType>,
): Code {
  const schema = schemaOf(parameter)
  const inside = `${place} ${parameter.in} ${parameter.name}`
  const code = context.code(schema, inside)
  const several = listCode(context, schema, code, { reader: 'repeated', place: inside })
  const others = new Set([...types].filter((type) => type !== 'array' && type !== 'null'))
  if (others.size === 0) return several
  const single = scalarCode(context, schema, inside, others, ',')
  return call('z.union', list([call(context.use('single'), single), several]))
}

function headersCode(reader: Reader, declared: readonly Parameter[]): Code | undefined {
  const { context } = reader
  const { notes } = context
  const members: Member[] = []
  for (const parameter of declared) {
    const name = parameter.name.toLowerCase()
    if (OTHER_HEADERS.has(name)) {
      context.document.coverage.useAll(parameter.located)
      notes.ignored(`header ${parameter.name}`, 'OpenAPI does not allow this header as a parameter')
      continue
    }
    if (!mayReachOrigin(name))
      notes.unmapped(
        reader.place,
        `header ${parameter.name} is not sent to the origin; list it in keepHeaders of the policy to send it`,
      )
    members.push([name, optionalCode(parameter, textCodeOf(reader, parameter) ?? 'z.string()')])
  }
  return members.length === 0 ? undefined : call('z.looseObject', object(members))
}

function optionalCode({ located }: Parameter, code: Code): Code {
  return located.value.required === true ? code : call('z.optional', code)
}

function schemaOf({ located }: Parameter): Located {
  return at(located, 'schema')
}

function typesOf({ context }: Reader, parameter: Parameter): ReadonlySet<SchemaType> | undefined {
  const schema = schemaOf(parameter)
  return schema.value === undefined ? undefined : possibleTypes(context.document, schema)
}

/** Returns code for the text of a parameter. Undefined if it is not checked. */
function textCodeOf(reader: Reader, parameter: Parameter): Code | undefined {
  const { context, place } = reader
  const { value } = parameter.located
  const inside = `${place} ${parameter.in} ${parameter.name}`
  if (isObject(value.content)) return contentCode(reader, parameter, inside)
  const schema = schemaOf(parameter)
  const empty = value.allowEmptyValue === true && parameter.in === 'query'
  const style = String(value.style ?? (parameter.in === 'query' ? 'form' : 'simple'))
  const types = typesOf(reader, parameter)
  const separator = SEPARATORS[style]
  if (separator === undefined && style !== 'deepObject') {
    context.document.coverage.useAll(parameter.located)
    context.notes.unmapped(inside, `style ${style} is not supported, so any text is accepted`)
    return undefined
  }
  if (types?.has('object') || (types?.has('array') && style === 'deepObject')) {
    context.document.coverage.useAll(parameter.located)
    context.notes.unmapped(
      inside,
      'an object that is serialized to one text is not supported, so any text is accepted',
    )
    return undefined
  }
  const code = scalarCode(context, schema, inside, types, separator ?? ',')
  return empty ? call('z.union', list(["z.literal('')", code])) : code
}

/** Returns code that reads text as each type that the schema accepts. */
function scalarCode(
  context: SchemaContext,
  schema: Located,
  place: string,
  types: ReadonlySet<SchemaType> | undefined,
  separator: string,
): Code {
  const { use } = context
  const code = context.code(schema, place)
  const readings: Code[] = []
  const accepts = (type: SchemaType) => types?.has(type) ?? true
  if (accepts('number') || accepts('integer')) readings.push(call(use('numberText'), code))
  if (accepts('boolean')) readings.push(call(use('booleanText'), code))
  if (accepts('array') && types !== undefined)
    readings.push(listCode(context, schema, code, { reader: 'listText', separator, place }))
  if (accepts('string') || readings.length === 0) readings.push(code)
  // A schema without a type: text is a value, whatever it looks like.
  if (types === undefined && schema.value === undefined) return 'z.string()'
  const [only, ...others] = readings
  if (only !== undefined && others.length === 0) return only
  return call('z.union', list(readings))
}

function listCode(
  context: SchemaContext,
  schema: Located,
  code: Code,
  {
    reader,
    separator = ',',
    place,
  }: {
    readonly reader: 'listText' | 'repeated'
    readonly separator?: string
    readonly place: string
  },
): Code {
  const items = itemsOf(context, schema)
  const types = items && possibleTypes(context.document, items)
  const kinds = new Set([...(types ?? [])].map((type) => (type === 'integer' ? 'number' : type)))
  kinds.delete('null')
  const options: Member[] = []
  if (separator !== ',') options.push(['separator', `'${separator}'`])
  if (kinds.size === 1 && kinds.has('number')) options.push(['of', "'number'"])
  else if (kinds.size === 1 && kinds.has('boolean')) options.push(['of', "'boolean'"])
  else if (kinds.size > 1 || kinds.has('object') || kinds.has('array')) {
    context.notes.unmapped(
      place,
      'items of several types are not supported, so any text is accepted',
    )
    return reader === 'listText' ? 'z.string()' : call('z.array', 'z.string()')
  }
  return call(context.use(reader), code, ...(options.length === 0 ? [] : [object(options)]))
}

/** Returns the items of an array, or of the array among alternatives (`null` or an array). */
function itemsOf({ document }: SchemaContext, schema: Located): Located | undefined {
  const target = document.resolve(schema)
  if (target === undefined || !isObject(target.value)) return undefined
  if (target.value.items !== undefined) return at(target, 'items')
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => partsOf(target, keyword))
  return parts.map((part) => itemsOf({ document } as SchemaContext, part)).find(Boolean)
}

function contentCode(reader: Reader, { located }: Parameter, place: string): Code | undefined {
  const { context } = reader
  const [type, ...others] = Object.keys(
    isObject(located.value.content) ? located.value.content : {},
  )
  if (type === undefined || others.length > 0 || !/^application\/json\b/i.test(type)) {
    context.document.coverage.useAll(at(located, 'content'))
    context.notes.unmapped(
      place,
      'only content of type application/json is supported, so any text is accepted',
    )
    return undefined
  }
  const content = at(located, 'content')
  for (const node of [content, at(content, type)]) context.document.coverage.use(node)
  const schema = at(content, type, 'schema')
  return call(context.use('jsonText'), context.code(schema, place))
}

interface Expanded {
  readonly members: readonly Member[]
  /** Whether there may be further members. */
  readonly isOpen: boolean
}

/** Returns a query parameter for each property of an object: `a`, or `name[a]` for `deepObject`. */
function expandedMembers(
  { context, place }: Reader,
  parameter: Parameter,
  isDeep: boolean,
): Expanded | undefined {
  const schema = context.document.follow(schemaOf(parameter))
  if (schema === undefined || !isObject(schema.value) || !isObject(schema.value.properties))
    return undefined
  const { properties, required, additionalProperties, allOf, anyOf, oneOf } = schema.value
  if (allOf !== undefined || anyOf !== undefined || oneOf !== undefined) return undefined
  useKeywords(context, { ...schema, value: schema.value }, [
    'type',
    'properties',
    'required',
    'additionalProperties',
  ])
  const names = Array.isArray(required) && parameter.located.value.required === true ? required : []
  const members: Member[] = []
  for (const name of Object.keys(properties)) {
    const property = at(schema, 'properties', name)
    const types = possibleTypes(context.document, property)
    if (types === undefined || types.has('object') || types.has('array')) return undefined
    const inside = `${place} query ${parameter.name} /${name}`
    const code = scalarCode(context, property, inside, types, ',')
    const key = isDeep ? `${parameter.name}[${name}]` : name
    members.push([key, names.includes(name) ? code : call('z.optional', code)])
  }
  return { members, isOpen: additionalProperties !== false }
}
