/** The `authorize` stage: default deny, and one permission a route. */
import { createMiddleware } from 'hono/factory'
import type { Authorizer } from '../authorization/permissions.ts'
import { callerOf, type PrincipalVariables } from '../context.ts'
import { Denied } from '../errors.ts'
import { PERMISSION } from '../validators/permission.ts'

export interface AuthorizeOptions {
  /** From `createAuthorizer(policy.roles)`. */
  readonly authorizer: Authorizer
  /** `<thing>:<verb>`. */
  readonly permission: string
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
export const authorize = ({ authorizer, permission }: AuthorizeOptions) => {
  if (!PERMISSION.test(permission)) {
    throw new TypeError(`authorize: "${permission}" is no permission such as orders:read`)
  }
  return createMiddleware<{ Variables: PrincipalVariables }>(async function authorize(c, next) {
    const principal = callerOf(c)
    if (principal === null) throw new Denied({ code: 'token_missing' })
    if (!authorizer(principal, permission)) {
      throw new Denied({ code: 'permission_missing', permission })
    }
    await next()
  })
}
