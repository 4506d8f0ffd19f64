/** One call guards a Hono app: the stages of the gateway, in its order. */
import type { Context, MiddlewareHandler } from 'hono'
import type { Principal } from '../access/principal.ts'
import { OutOfOrder, ProblemError } from '../errors.ts'
import { createBuilds } from '../guard/builds.ts'
import { platformAddress } from '../guard/client-address.ts'
import type { Declaration, DeclarationOf } from '../guard/declaration.ts'
import { onceForEach } from '../guard/environment.ts'
import type { GuardState } from '../guard/guarded.ts'
import type { OnlyKnown, GuardOptions as OptionsOf } from '../guard/options.ts'
import { type GuardMethods, guardMethods } from '../guard/route-guards.ts'
import { closeUndeclared } from './closed-routes.ts'
import { combineDemand } from './demand.ts'
import type { RouteGuard } from './route-guard.ts'

/** Variables of `app.use(guard)`: `caller` is null for an anonymous caller of a public route. */
export interface GuardVariables {
  caller: Principal | null
}

/** Behind `guard.require` and `guard.authenticated`. */
export interface CallerVariables {
  caller: Principal
}

/** The types of an app: `new Hono<GuardEnv<Env>>()`, unless `app.use(guard)` is chained. */
export interface GuardEnv<Bindings extends object = object> {
  Bindings: Bindings
  Variables: GuardVariables
}

/** A value from the environment may be undefined in the types: the check at the start names it. */
export type GuardOptions<
  LimitName extends string = string,
  Permission extends string = string,
> = OptionsOf<LimitName, Permission, Context>

type Methods<LimitName extends string, Permission extends string> = GuardMethods<
  RouteGuard<CallerVariables, LimitName>,
  RouteGuard<GuardVariables, LimitName>,
  Permission,
  Context
>

/** The guard of an app. A route without limits or input needs no `authenticated()`. */
export interface Guard<
  Bindings extends object = object,
  LimitName extends string = string,
  Permission extends string = string,
> extends MiddlewareHandler<GuardEnv<Bindings>>,
    Methods<LimitName, Permission> {}

/**
 * Creates the guard of an app. `app.use(guard)` identifies the caller, checks revocation, bans and
 * limits in one round trip to Redis, and records an audit event. Every route behind it needs a valid
 * token, also a route that declares nothing; `guard.public()` opens one.
 *
 * Options may be a function of the environment: it is called once for each isolate. Wrong options
 * throw one `Misconfigured` with all mistakes; those of a function are logged, and each request gets
 * the problem `misconfigured`.
 *
 * A refusal is an `HTTPException`: `app.onError` receives it. Without it, the response is a problem
 * document.
 *
 * @example
 * ```ts
 * const guard = portcullis((env: Env) => ({
 *   issuers: [{ issuer: 'https://me.eu.auth0.com/', audience: 'https://notes.example.com' }],
 *   redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN },
 *   roles: { reader: ['notes:read'] },
 *   limits: { standard: '100/min' },
 * }))
 * const app = new Hono().use(guard)
 * app.get('/notes', guard.require('notes:read'), (c) => c.json(c.var.caller.subject))
 * ```
 */
export function portcullis<
  Bindings extends object = object,
  const LimitName extends string = never,
  const Permission extends string = never,
  Given = unknown,
>(
  options:
    | GuardOptions<LimitName, Permission>
    | ((env: Bindings) => GuardOptions<LimitName, Permission> & Given & OnlyKnown<Given>),
): Guard<Bindings, LimitName, Permission> {
  const builds = createBuilds(options, (declarationOf) => ({
    demandOf: (c) => combineDemand(c, declarationOf),
    closeUndeclared: (c) => closeUndeclared(c, declarationOf),
    addressOf: platformAddress,
  }))
  const { declarationOf } = builds
  const outcomeOf = onceForEach(builds.build)

  const handlerOf = (declaration: Declaration): MiddlewareHandler =>
    function routeGuard(c, next) {
      const { guarded, planned } = requireState(c, declarationOf, declaration.text)
      return guarded.access(declaration, planned.has(declaration))(c, next)
    }

  const guard: MiddlewareHandler<GuardEnv<Bindings>> = async function guard(c, next) {
    // The guard is registered for two patterns that match.
    if (stateOf(c)?.guarded.declarationOf === declarationOf) return next()
    const outcome = outcomeOf(c)
    if ('refusal' in outcome) return outcome.refusal.fetch(c.req.raw)
    let errorBehind: Error | undefined
    await outcome.guarded.admit(c, async () => {
      await next()
      errorBehind = c.error
    })
    // The event is recorded. The app's error handler answers, and keeps the headers of `c.res`.
    if (c.error !== errorBehind && c.error instanceof ProblemError) throw c.error
  }

  const methods: Methods<LimitName, Permission> = guardMethods(builds, {
    handlerOf,
    admissionOf: (c, what) => ({ c, guarded: requireState(c, declarationOf, what).guarded }),
  })
  return Object.assign(guard, methods)
}

function stateOf(c: Context): GuardState | undefined {
  return c.get('portcullis.guard')
}

/** Returns the state of this guard. Throws `OutOfOrder` for `what` if the guard did not run. */
function requireState(c: Context, of: DeclarationOf, what: string): GuardState {
  const state = stateOf(c)
  if (state?.guarded.declarationOf === of) return state
  const path = c.req.matchedRoutes[c.req.routeIndex]?.path ?? c.req.path
  const needed =
    state === undefined
      ? 'app.use(guard) must run before it'
      : 'app.use() of the same guard must run before it; another guard did'
  throw new OutOfOrder(`${what} on ${c.req.method} ${path}: ${needed}`)
}
