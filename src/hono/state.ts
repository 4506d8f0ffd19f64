/** The guards of an app, and the variables that a guard sets. */
import type { Context, MiddlewareHandler } from 'hono'
import type { Principal } from '../access/principal.ts'
import { OutOfOrder } from '../errors.ts'
import type { Declaration } from './declaration.ts'
import type { Revoke } from './revoke.ts'

/** The guards of an app for one environment. */
export interface Guarded {
  /** Identifies the guard, for whatever environment it is built. */
  readonly declarationOf: DeclarationOf
  /** Every stage up to the admission of the caller. */
  readonly admit: MiddlewareHandler
  /** Returns the stages that a route declares, after the admission. */
  access(declaration: Declaration, isPlanned: boolean): MiddlewareHandler
  /** Adds a route. Throws `Misconfigured` if it names a limit that the options do not have. */
  declare(declaration: Declaration): void
  readonly revoke: Revoke
}

/** Returns what a handler of the app declares, if it is the guard of a route. */
export type DeclarationOf = (handler: MiddlewareHandler) => Declaration | undefined

/** The state of `app.use(guard)` for a request. */
export interface GuardState {
  readonly guarded: Guarded
  /** The declarations with limits that are counted already. */
  readonly planned: ReadonlySet<Declaration>
}

export interface GuardedVariables {
  'portcullis.guard': GuardState
  caller: Principal | null
}

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
