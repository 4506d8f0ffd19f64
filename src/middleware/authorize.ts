/** The `authorize` stage: default deny, one permission a route, and at most one relation. */
import { createMiddleware } from 'hono/factory'
import { reasonOfDenial } from '../audit/reason.ts'
import type { Authorizer } from '../authorization/permissions.ts'
import { callerOf, type PrincipalVariables, type RelationVariables } from '../context.ts'
import { Denied } from '../errors.ts'
import type { Mode } from '../validators/mode.ts'
import { PERMISSION } from '../validators/permission.ts'
import { observe } from './observe.ts'
import { demandRelation, type RelationOptions } from './relation.ts'

type Environment = { Variables: PrincipalVariables & RelationVariables }

export interface AuthorizeOptions {
  /** From `createAuthorizer(policy.roles)`. */
  readonly authorizer: Authorizer
  /** `<thing>:<verb>`. */
  readonly permission: string
  /** `observe`: whoever lacks it passes, and the audit event tells. Default `enforce`. */
  readonly mode?: Mode | undefined
  /** What the caller must be to an object, besides. Default: permissions decide by themselves. */
  readonly relation?: RelationOptions | undefined
}

/**
 * Lets a caller pass who has `permission`, and `relation` where one is demanded; refuses others with
 * `permission_missing` (403, `insufficient_scope`), `relation_missing` or `relation_unknown` (403), and
 * anonymous ones with `token_missing` (401). Without a relation it decides by function, not by object:
 * whether this order is this caller's order is for the origin to say.
 *
 * A relation that `admit` has asked for costs nothing here. Else it is asked for, in a call of its own:
 * of an external authority, and of a caller whose credential this isolate did not know. Throws
 * `Unavailable` where nobody can tell, and `Denied` (`request_malformed`) for an `X-Consistency-Token`
 * that is none of the caller's tenant.
 *
 * @example
 * ```ts
 * const authorizer = createAuthorizer(new Map([['reader', ['orders:read']]]))
 * app.get('/orders', authenticate({ verifier }), authorize({ authorizer, permission: 'orders:read' }))
 * ```
 */
export const authorize = ({
  authorizer,
  permission,
  mode = 'enforce',
  relation,
}: AuthorizeOptions) => {
  if (!PERMISSION.test(permission)) {
    throw new TypeError(`authorize: "${permission}" is no permission such as orders:read`)
  }
  return createMiddleware<Environment>(function authorize(c, next) {
    const principal = callerOf(c)
    if (principal === null) throw new Denied({ code: 'token_missing' })
    if (!authorizer(principal, permission)) {
      const denial = { code: 'permission_missing', permission } as const
      if (mode === 'enforce') throw new Denied(denial)
      observe(c, reasonOfDenial(denial))
    }
    if (relation === undefined) return next()
    return demandRelation(c, relation, principal).then(next)
  })
}
