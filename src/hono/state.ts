/** The variables that a guard sets. */
import type { Context } from 'hono'
import { OutOfOrder } from '../errors.ts'
import type { DeclarationOf } from '../guard/declaration.ts'
import type { GuardState } from '../guard/guarded.ts'

export function stateOf(c: Context): GuardState | undefined {
  return c.get('portcullis.guard')
}

/** Returns the state of this guard. Throws `OutOfOrder` for `what` if the guard did not run. */
export function requireState(c: Context, of: DeclarationOf, what: string): GuardState {
  const state = stateOf(c)
  if (state?.guarded.declarationOf === of) return state
  const path = c.req.matchedRoutes[c.req.routeIndex]?.path ?? c.req.path
  const needed =
    state === undefined
      ? 'app.use(guard) must run before it'
      : 'app.use() of the same guard must run before it; another guard did'
  throw new OutOfOrder(`${what} on ${c.req.method} ${path}: ${needed}`)
}
