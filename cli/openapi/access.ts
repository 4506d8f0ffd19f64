/** Who may call an operation: its permission, or anyone. */
import { PERMISSION } from '../../src/validators/names.ts'

import { at, type Document, isObject, type Located } from './document.ts'
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
 * Returns the access of an operation. Without a security requirement that names one permission, the
 * permission is derived from path and method.
 */
export function accessOf(
  { document, notes }: { readonly document: Document; readonly notes: Notes },
  operation: Located,
  route: { readonly method: string; readonly template: string; readonly place: string },
): Access {
  const own = at(operation, 'security').value
  const requirements = own ?? document.root.value.security
  const { place } = route
  if (Array.isArray(requirements)) {
    if (requirements.length === 0) return ['anonymous', true]
    if (requirements.some((one) => isObject(one) && Object.keys(one).length === 0))
      return ['anonymous', true]
  } else {
    notes.assumed(
      place,
      'has no security requirement; the permission is derived, so callers need a token',
    )
    return ['permission', derived(route)]
  }
  const alternatives = requirements.map(scopesOf)
  const [first = [], ...others] = alternatives
  const [scope, ...more] = first
  const isAlike = others.every((scopes) => scopes.join(' ') === first.join(' '))
  if (scope === undefined && isAlike) return ['permission', derived(route)]
  if (scope !== undefined && more.length === 0 && isAlike && PERMISSION.test(scope))
    return ['permission', scope]
  const wanted = alternatives.map((scopes) => scopes.join(' and ') || 'none').join(', or ')
  const permission = derived(route)
  notes.assumed(
    place,
    `permission ${permission} is derived; the document requires the scopes: ${wanted}`,
  )
  return ['permission', permission]
}

/** Returns the scopes of all schemes of one requirement. */
function scopesOf(requirement: unknown): readonly string[] {
  if (!isObject(requirement)) return []
  const scopes = Object.values(requirement).flatMap((list) => (Array.isArray(list) ? list : []))
  return [...new Set(scopes.map(String))].sort()
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
