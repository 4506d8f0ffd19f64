/** The `authorize` stage: default deny, one permission and at most one relation per route. */

import type { Authorizer } from '../access/permissions.ts'
import { reasonOfDenial } from '../audit/reason.ts'
import { Denied } from '../errors.ts'
import type { Mode } from '../validators/mode.ts'
import { PERMISSION } from '../validators/names.ts'
import { callerOf, observe } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { type RelationOptions, requireRelation, resolveRelation } from './relation.ts'

export interface AuthorizeOptions {
  readonly authorizer: Authorizer
  /** `<thing>:<verb>`. Undefined: any identified caller is admitted. */
  readonly permission: string | undefined
  /** Default `enforce`. */
  readonly mode?: Mode | undefined
  /** Default: only the permission decides. */
  readonly relation?: RelationOptions | undefined
}

/**
 * Admits a caller with `permission`, and with `relation` if one is required. Refuses others with
 * `permission_missing`, `relation_missing` or `relation_unknown` (403), and anonymous callers with
 * `missing_token` (401). Without a relation it decides by function, not by object: the origin must
 * check whether an order belongs to the caller.
 *
 * Throws `Unavailable` if the relation cannot be decided, and `Denied` (`malformed_request`) for an
 * `X-Consistency-Token` that is not of the caller's tenant.
 *
 * @example
 * ```ts
 * const authorizer = createAuthorizer(new Map([['reader', ['orders:read']]]))
 * app.get('/orders', authorize({ authorizer, permission: 'orders:read' }), handler)
 * ```
 */
export const authorize = ({
  authorizer,
  permission,
  mode = 'enforce',
  relation,
}: AuthorizeOptions) => {
  if (permission !== undefined && !PERMISSION.test(permission)) {
    throw new TypeError(`authorize: "${permission}" is not a permission such as orders:read`)
  }
  if (permission !== undefined) authorizer.declare?.([permission])
  return createMiddleware(function authorize(c, next) {
    const principal = callerOf(c, 'authorize')
    if (principal === null) throw new Denied({ code: 'missing_token' })
    if (permission !== undefined && !authorizer(principal, permission)) {
      const denial = { code: 'permission_missing', permission } as const
      if (mode === 'enforce') throw new Denied(denial)
      observe(c, reasonOfDenial(denial))
    }
    if (relation === undefined) return next()
    return requireRelation(c, resolveRelation(c, relation, principal), relation).then(next)
  })
}
