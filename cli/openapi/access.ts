/** Who may call an operation: its permission, or anyone. */
import { PERMISSION } from '../../src/validators/names.ts'

import type { Document } from './document.ts'
import { at, isObject, type JsonObject, type Located } from './located.ts'
import type { Notes } from './notes.ts'

/** `permission` or `anonymous`, and its value. */
export type Access = readonly [field: 'permission' | 'anonymous', value: string | true]

const VERBS: Readonly<Record<string, string>> = {
  GET: 'read',
  POST: 'write',
  PUT: 'write',
  PATCH: 'write',
  DELETE: 'delete',
}
/** Segments before the name of a thing. */
const COMMON = /^(?:api|rest|v\d[\w.]*|\d{4}-\d{2}-\d{2})$/i

/**
 * Returns the access of an operation: of its security requirements, or those of the document. Where
 * they name no scope that is a permission, it is derived from path and method.
 */
export function accessOf(
  { document, notes }: { readonly document: Document; readonly notes: Notes },
  operation: Located,
  route: { readonly method: string; readonly template: string; readonly place: string },
): Access {
  const ofOperation = at(operation, 'security')
  const declared = ofOperation.value === undefined ? at(document.root, 'security') : ofOperation
  const { place } = route
  document.coverage.useAll(declared)
  if (declared.value === undefined) {
    notes.assumed(
      place,
      'has no security requirement; callers need a token with a permission derived from the path and the method',
    )
    return ['permission', derived(route)]
  }
  const requirements = requirementsIn(declared.value)
  const alternatives = requirements.map(scopesOf)
  const lists = alternatives.filter((scopes) => scopes !== undefined)
  if (lists.length < alternatives.length) {
    notes.unmapped(
      place,
      'the security requirement is not a list of objects with lists of scopes; callers need a token with a permission derived from the path and the method',
    )
    return ['permission', derived(route)]
  }
  noteUndeclared(document, notes, requirements, place)
  if (lists.length === 0 || requirements.some((one) => Object.keys(one).length === 0))
    return ['anonymous', true]
  if (lists.every((scopes) => scopes.length === 0)) return ['permission', derived(route)]
  const candidates = candidatesIn(lists)
  const own = derived(route)
  const permission = candidates.includes(own) ? own : (candidates[0] ?? own)
  const others = lists.map((scopes) => scopes.filter((scope) => scope !== permission))
  if (lists.every((scopes) => scopes.length === 1) && others.flat().length === 0)
    return ['permission', permission]
  const wanted = lists.map((scopes) => scopes.join(' and ') || 'none').join(', or ')
  const text = `the document requires the scopes: ${wanted}`
  if (candidates.length === 0) notes.assumed(place, `permission ${permission} is derived; ${text}`)
  else if (lists.some((scopes) => scopes.includes(permission) && scopes.length > 1))
    notes.unmapped(
      place,
      `only the permission ${permission} is required, although ${text}; set another one with x-portcullis-permission`,
    )
  else notes.assumed(place, `permission ${permission} is required; ${text}`)
  return ['permission', permission]
}

/** An empty object in place of the list is no list without requirements: it must not open an operation. */
function requirementsIn(value: unknown): readonly JsonObject[] {
  if (Array.isArray(value)) return value
  const isRequirement = isObject(value) && Object.keys(value).length > 0
  return [isRequirement ? value : undefined] as readonly JsonObject[]
}

/** A document without a list of schemes declares none. */
function noteUndeclared(
  document: Document,
  notes: Notes,
  requirements: readonly JsonObject[],
  place: string,
): void {
  const declared = at(document.root, 'components', 'securitySchemes').value
  if (!isObject(declared)) return
  for (const name of requirements.flatMap(Object.keys))
    if (!Object.hasOwn(declared, name))
      notes.unmapped(
        place,
        `security names the scheme ${name}, which components.securitySchemes does not declare; declare it, or correct the name`,
      )
}

/** Returns the scopes that are permissions: those of every alternative, or else those of the first. */
function candidatesIn(lists: readonly (readonly string[])[]): readonly string[] {
  const [first = [], ...others] = lists
    .map((scopes) => scopes.filter((scope) => PERMISSION.test(scope)))
    .filter((scopes) => scopes.length > 0)
  const common = first.filter((scope) => others.every((scopes) => scopes.includes(scope)))
  return common.length > 0 ? common : first
}

/**
 * Returns the scopes of all schemes of one requirement, in their order. Undefined if it is not a
 * requirement.
 */
function scopesOf(requirement: unknown): readonly string[] | undefined {
  if (!isObject(requirement)) return undefined
  const lists = Object.values(requirement)
  if (!lists.every((list) => Array.isArray(list) && list.every((name) => typeof name === 'string')))
    return undefined
  return [...new Set(lists.flat() as string[])]
}

/** `GET /api/v1/orders/{id}` becomes `orders:read`. */
function derived({
  method,
  template,
}: {
  readonly method: string
  readonly template: string
}): string {
  const thing = template
    .replace(/\?.*/s, '')
    .split('/')
    .filter((segment) => segment !== '' && !segment.includes('{') && !COMMON.test(segment))
    .map((segment) =>
      segment
        .toLowerCase()
        .replaceAll(/[^a-z0-9_-]+/g, '-')
        .replaceAll(/^-+|-+$/g, ''),
    )
    .find((segment) => segment !== '')
  return `${thing ?? 'api'}:${VERBS[method] ?? 'write'}`
}
