/** The `authorize` stage: default deny, and one permission a route. */
import { createMiddleware } from 'hono/factory'
import { reasonOfDenial } from '../audit/reason.ts'
import type { Authorizer } from '../authorization/permissions.ts'
import { callerOf, type PrincipalVariables } from '../context.ts'
import { Denied } from '../errors.ts'
import type { Mode } from '../validators/mode.ts'
import { PERMISSION } from '../validators/permission.ts'
import { observe } from './observe.ts'

export interface AuthorizeOptions {
  /** From `createAuthorizer(policy.roles)`. */
  readonly authorizer: Authorizer
  /** `<thing>:<verb>`. */
  readonly permission: string
  /** `observe`: whoever lacks it passes, and the audit event tells. Default `enforce`. */
  readonly mode?: Mode | undefined
}

/**
 * Lets a caller pass who has `permission`; refuses others with `permission_missing` (403,
 * `insufficient_scope`) and anonymous ones with `token_missing` (401). Decides by function, not by
 * object: whether this order is this caller's order is for the origin to say.
 *
 * @example
 * ```ts
 * const authorizer = createAuthorizer(new Map([['reader', ['orders:read']]]))
 * app.get('/orders', authenticate({ verifier }), authorize({ authorizer, permission: 'orders:read' }))
 * ```
 */
export const authorize = ({ authorizer, permission, mode = 'enforce' }: AuthorizeOptions) => {
  if (!PERMISSION.test(permission)) {
    throw new TypeError(`authorize: "${permission}" is no permission such as orders:read`)
  }
  return createMiddleware<{ Variables: PrincipalVariables }>(function authorize(c, next) {
    const principal = callerOf(c)
    if (principal === null) throw new Denied({ code: 'token_missing' })
    if (!authorizer(principal, permission)) {
      const denial = { code: 'permission_missing', permission } as const
      if (mode === 'enforce') throw new Denied(denial)
      observe(c, reasonOfDenial(denial))
    }
    return next()
  })
}
