/** Converts the operations of a document to rows of the route table. */
import { METHODS, type Method } from '../../src/validators/policy.ts'
import type { Progress } from '../progress.ts'
import { counted } from '../text.ts'
import { accessOf } from './access.ts'
import { type BodyOptions, bodyCode } from './body.ts'
import { type Code, literal, object, quoted, written } from './code.ts'
import { at, type Document, isObject, type Located } from './document.ts'
import { extensionsOf } from './extensions.ts'
import { pascal } from './names.ts'
import type { Notes } from './notes.ts'
import { parameterCodes, parametersOf } from './parameters.ts'
import type { Definitions } from './schema/definitions.ts'
import { basePathOf } from './servers.ts'
import { comparePatterns, type PathPattern, patternOf, withoutNames } from './template.ts'

export interface RouteOptions extends BodyOptions {
  /** Path before all paths, in place of that of the server. */
  readonly prefix: string | undefined
  /** Names of limits of routes without `x-portcullis-limits`. */
  readonly limits: readonly string[]
  readonly progress?: Progress | undefined
}

/** A row, with the code of each field. */
export interface ImportedRoute {
  readonly method: Method
  readonly path: string
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

const OPERATIONS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'] as const

export function routesOf(
  document: Document,
  definitions: Definitions,
  options: RouteOptions,
): ImportedRoutes {
  const { notes } = definitions
  const found: ImportedRoute[] = []
  const mistakes: string[] = []
  let operations = 0
  const paths = at(document.root, 'paths')
  for (const template of Object.keys(isObject(paths.value) ? paths.value : {})) {
    if (!template.startsWith('/')) continue
    const pathItem = document.resolve(at(paths, template))
    if (pathItem === undefined || !isObject(pathItem.value)) {
      notes.unmapped(template, 'the path item cannot be read')
      continue
    }
    for (const name of OPERATIONS) {
      const operation = at(pathItem, name)
      if (!isObject(operation.value)) continue
      operations += 1
      options.progress?.update(counted(operations, 'operation'))
      const place = `${name.toUpperCase()} ${template}`
      const method = METHODS.find((known) => known.toLowerCase() === name)
      if (method === undefined) {
        // GET answers HEAD as well.
        if (name !== 'head' || pathItem.value.get === undefined)
          notes.unmapped(place, `there are no routes of the method ${name.toUpperCase()}`)
        continue
      }
      const prefix = options.prefix ?? basePathOf(operation, pathItem, document.root)
      const pattern = patternOf(prefix + template)
      if (typeof pattern === 'string') {
        notes.unmapped(place, `the path cannot be mapped: ${pattern}`)
        continue
      }
      const route = { method, template, place, pattern, pathItem, operation }
      found.push(routeOf(document, definitions, route, options, mistakes))
    }
  }
  const routes = withoutShadowed(found, notes)
  return { routes, operations, mistakes }
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
  const { fields: own, unknown } = extensionsOf([
    document.root.value,
    pathItem.value,
    operation.value,
  ])
  mistakes.push(...unknown.map((name) => `${place}: there is no extension ${name}`))
  const data = new Map<string, unknown>()
  if (own.has('permission') || own.has('anonymous')) {
    const field = own.has('permission') ? 'permission' : 'anonymous'
    data.set(field, own.get(field))
  } else {
    const [field, value] = accessOf(definitions, operation, route)
    data.set(field, value)
  }
  if (options.limits.length > 0) data.set('limits', options.limits)
  const input = new Map<string, Code>()
  const name = method.toLowerCase() + pascal(template)
  const codes = parameterCodes(
    reader,
    parametersOf(reader, pathItem, operation),
    pattern.parameters,
  )
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
    definitions.notes.unmapped(place, 'the body is refused, because a GET has no body')
  else if (body !== undefined)
    input.set('body', typeof body === 'string' ? body : definitions.constant(`${name}Body`, body))
  if (isForbidden && method !== 'GET') data.set('maxBodyBytes', 0)
  for (const [field, value] of own) data.set(field, value)
  const fields = new Map<string, Code>([...data].map(([field, value]) => [field, literal(value)]))
  return { method, path: pattern.path, place, fields, data, input }
}

/** Sorts the routes and removes those that another one hides. */
function withoutShadowed(found: readonly ImportedRoute[], notes: Notes): readonly ImportedRoute[] {
  const sorted = [...found].sort(
    (one, other) =>
      comparePatterns(one.path, other.path) ||
      METHODS.indexOf(one.method) - METHODS.indexOf(other.method),
  )
  const seen = new Map<string, ImportedRoute>()
  return sorted.filter((route) => {
    const key = `${route.method} ${withoutNames(route.path)}`
    const first = seen.get(key)
    if (first !== undefined) notes.unmapped(route.place, `has the same requests as ${first.place}`)
    else seen.set(key, route)
    return first === undefined
  })
}

/** Returns the code of a row. */
export function rowCode({ method, path, fields, input }: ImportedRoute): Code {
  const members: [string, Code][] = [['method', quoted(method)], ['path', quoted(path)], ...fields]
  if (input.size > 0) members.push(['input', object([...input])])
  return object(members)
}
