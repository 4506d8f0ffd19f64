/** Converts the operations of a document to rows of the route table. */
import { METHODS, type Method } from '../../src/validators/policy.ts'
import type { Progress } from '../progress.ts'
import { counted } from '../text.ts'
import { accessOf } from './access.ts'
import { type BodyOptions, bodyCode } from './body.ts'
import { type Code, literal, object, quoted, written } from './code.ts'
import type { Document } from './document.ts'
import { extensionsOf } from './extensions.ts'
import { at, isObject, type Located } from './located.ts'
import { pascal } from './names.ts'
import type { Notes } from './notes.ts'
import { parameterCodes, parametersOf } from './parameters.ts'
import type { Definitions } from './schema/definitions.ts'
import { basePathOf, noteHosts } from './servers.ts'
import { comparePatterns, type PathPattern, patternOf, withoutNames } from './template.ts'

export interface RouteOptions extends BodyOptions {
  /** Path before all paths, in place of that of the server. */
  readonly prefix: string | undefined
  /** Names of limits of routes with a permission and without `x-portcullis-limits`. */
  readonly limits: readonly string[]
  /** The same for anonymous routes. Limits by subject do not suit these. */
  readonly anonymousLimits?: readonly string[]
  readonly progress?: Progress | undefined
}

/** A row, with the code of each field. */
export interface ImportedRoute {
  readonly method: Method
  readonly path: string
  /** Query parameters that the path of the document contains. */
  readonly query: ReadonlyMap<string, string>
  /** The operation in the document: `GET /orders/{id}`. */
  readonly place: string
  readonly fields: ReadonlyMap<string, Code>
  /** Values of the fields that are data. */
  readonly data: ReadonlyMap<string, unknown>
  readonly input: ReadonlyMap<string, Code>
}

export interface ImportedRoutes {
  readonly routes: readonly ImportedRoute[]
  /** Number of operations in the document. */
  readonly operations: number
  /** Extensions that do not exist. */
  readonly mistakes: readonly string[]
}

const OPERATIONS = [
  'get',
  'put',
  'post',
  'delete',
  'patch',
  'head',
  'options',
  'trace',
  'query',
] as const

export function routesOf(
  document: Document,
  definitions: Definitions,
  options: RouteOptions,
): ImportedRoutes {
  const { notes } = definitions
  const found: ImportedRoute[] = []
  const mistakes: string[] = []
  let operations = 0
  const { root, coverage } = document
  coverage.use(root)
  for (const name of ['openapi', 'security']) coverage.useAll(at(root, name))
  if (options.prefix !== undefined) coverage.useAll(at(root, 'servers'))
  if (options.prefix === undefined) basePathOf(document, notes, root)
  const paths = at(root, 'paths')
  if (isObject(paths.value)) coverage.use(paths)
  for (const template of Object.keys(isObject(paths.value) ? paths.value : {})) {
    if (template.startsWith('x-')) continue
    const declared = at(paths, template)
    const pathItem = document.follow(declared)
    if (!template.startsWith('/')) {
      coverage.useAll(declared)
      notes.unmapped(
        template,
        'the path does not begin with a slash, so no route is created; add the slash',
      )
      continue
    }
    if (pathItem === undefined || !isObject(pathItem.value)) {
      coverage.useAll(declared)
      notes.unmapped(
        template,
        'the path item cannot be read: it must be an object, or a reference to one',
      )
      continue
    }
    const pattern = patternOf(template)
    for (const { name, operation } of operationsOf(document, pathItem)) {
      const place = `${name.toUpperCase()} ${template}`
      if (!isObject(operation.value)) {
        coverage.useAll(operation)
        notes.unmapped(place, 'the operation is not an object, so no route is created')
        continue
      }
      operations += 1
      options.progress?.update(counted(operations, 'operation'))
      const method = METHODS.find((known) => known.toLowerCase() === name)
      if (method === undefined) {
        coverage.useAll(operation)
        if (name === 'head' && isObject(pathItem.value.get))
          notes.assumed(place, 'is served by the route for GET, with the rules of that route')
        else
          notes.unmapped(
            place,
            `the gateway has no routes for the method ${name.toUpperCase()}, so its requests are refused`,
          )
        continue
      }
      if (typeof pattern === 'string') {
        coverage.useAll(pathItem)
        notes.unmapped(place, `the path cannot be mapped: ${pattern}`)
        continue
      }
      coverage.use(operation)
      noteHosts(document, notes, [operation, pathItem], options.prefix !== undefined)
      const server = options.prefix ?? basePathOf(document, notes, operation, pathItem, root)
      const prefixed = patternOf(server + template)
      if (typeof prefixed === 'string') {
        coverage.useAll(pathItem)
        notes.unmapped(
          place,
          `the path of the server cannot be mapped: ${prefixed}; --prefix replaces it`,
        )
        continue
      }
      const route = { method, template, place, pattern: prefixed, pathItem, operation }
      found.push(routeOf(document, definitions, route, options, mistakes))
    }
  }
  const routes = withoutShadowed(found, notes)
  return { routes, operations, mistakes }
}

/** Returns the operations of a path item, those of OpenAPI 3.2 as well. */
function operationsOf(
  { coverage }: Document,
  pathItem: Located,
): readonly { readonly name: string; readonly operation: Located }[] {
  const own = OPERATIONS.map((name) => ({ name, operation: at(pathItem, name) }))
  const additional = at(pathItem, 'additionalOperations')
  if (isObject(additional.value)) coverage.use(additional)
  const others = Object.keys(isObject(additional.value) ? additional.value : {}).map((name) => ({
    name,
    operation: at(additional, name),
  }))
  return [...own, ...others].filter(({ operation }) => operation.value !== undefined)
}

interface Operation {
  readonly method: Method
  readonly template: string
  readonly place: string
  readonly pattern: PathPattern
  readonly pathItem: Located
  readonly operation: Located
}

function routeOf(
  document: Document,
  definitions: Definitions,
  route: Operation,
  options: RouteOptions,
  mistakes: string[],
): ImportedRoute {
  const { method, place, pattern, pathItem, operation, template } = route
  const reader = { context: definitions, place }
  const { fields: own, unknown } = extensionsOf(document.coverage, [
    document.root,
    pathItem,
    operation,
  ])
  mistakes.push(
    ...unknown.map((name) => `${place}: unknown extension ${name}; remove it, or correct its name`),
  )
  const data = new Map<string, unknown>()
  if (own.has('permission') || own.has('anonymous')) {
    const field = own.has('permission') ? 'permission' : 'anonymous'
    data.set(field, own.get(field))
    const security = at(operation, 'security')
    document.coverage.useAll(security)
    if (security.value !== undefined)
      definitions.notes.ignored('security', `the extension for ${field} replaces it`)
  } else {
    const [field, value] = accessOf(definitions, operation, route)
    data.set(field, value)
  }
  const input = new Map<string, Code>()
  const name = method.toLowerCase() + pascal(template)
  const codes = parameterCodes(reader, parametersOf(reader, pathItem, operation), pattern)
  for (const part of ['params', 'query', 'headers'] as const) {
    const code = codes[part]
    if (code === undefined) continue
    const isEmpty = written(code) === 'z.strictObject({})'
    input.set(
      part,
      definitions.constant(isEmpty ? `no${pascal(part)}` : `${name}${pascal(part)}`, code),
    )
  }
  const { body, isForbidden } = bodyCode(definitions, operation, place, options)
  if (body !== undefined && method === 'GET')
    definitions.notes.unmapped(
      place,
      'the body is not imported: the gateway accepts no body in a GET request',
    )
  else if (body !== undefined)
    input.set('body', typeof body === 'string' ? body : definitions.constant(`${name}Body`, body))
  if (isForbidden && method !== 'GET') data.set('maxBodyBytes', 0)
  for (const [field, value] of own) data.set(field, value)
  const isAnonymous = data.get('anonymous') === true
  const limits = isAnonymous ? (options.anonymousLimits ?? []) : options.limits
  if (limits.length > 0 && !data.has('limits')) data.set('limits', limits)
  if (isAnonymous && options.limits.length > 0 && !data.has('limits'))
    definitions.notes.assumed(
      place,
      'is anonymous and has no limit; add one with --anonymous-limit',
    )
  const fields = new Map<string, Code>([...data].map(([field, value]) => [field, literal(value)]))
  return { method, path: pattern.path, query: pattern.query, place, fields, data, input }
}

/** Sorts the routes and removes those that another one hides. */
function withoutShadowed(found: readonly ImportedRoute[], notes: Notes): readonly ImportedRoute[] {
  const sorted = [...found].sort(
    (one, other) =>
      comparePatterns(one.path, other.path) ||
      METHODS.indexOf(one.method) - METHODS.indexOf(other.method) ||
      one.query.size - other.query.size,
  )
  const seen = new Map<string, ImportedRoute>()
  return sorted.filter((route) => {
    const key = `${route.method} ${withoutNames(route.path)}`
    const first = seen.get(key)
    if (first !== undefined)
      notes.unmapped(
        route.place,
        first.query.size + route.query.size === 0
          ? `matches the same requests as ${first.place}, so it is not imported; remove one`
          : `has the same path as ${first.place} and differs only in the query, which does not select a route: its requests are refused`,
      )
    else seen.set(key, route)
    return first === undefined
  })
}

export function rowCode({ method, path, fields, input }: ImportedRoute): Code {
  const members: [string, Code][] = [['method', quoted(method)], ['path', quoted(path)], ...fields]
  if (input.size > 0) members.push(['input', object([...input])])
  return object(members)
}
