/** One call guards a Hono app: the stages of the gateway, in its order. */
import type { Context, Hono, MiddlewareHandler } from 'hono'
import type { Principal } from '../access/principal.ts'
import { Misconfigured, ProblemError } from '../errors.ts'
import { refuseAll } from '../gateway/refuse-all.ts'
import { callerOf } from '../middleware/context.ts'
import type { PermissionDemand } from '../policy/definition.ts'
import { PERMISSION } from '../validators/names.ts'
import { type Declaration, type RouteGuard, routeGuard } from './declaration.ts'
import { onceForEach } from './environment.ts'
import { createGuarded } from './guarded.ts'
import type { GuardOptions, OnlyKnown } from './options.ts'
import type { RevocationTarget } from './revoke.ts'
import { OPTIONS } from './schema.ts'
import { type DeclarationOf, type Guarded, requireState, stateOf } from './state.ts'

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

// A union with a plain string would drop the names from an editor's suggestions.
type Suggested<Name extends string> = Name | (string & Record<never, never>)

export interface Guard<
  Bindings extends object = object,
  LimitName extends string = string,
  Permission extends string = string,
> extends MiddlewareHandler<GuardEnv<Bindings>> {
  /** Guards a route: callers need this permission, from their roles and scopes. */
  require(
    permission: Suggested<Permission> | PermissionDemand,
  ): RouteGuard<CallerVariables, LimitName>
  /** Guards a route for any identified caller. For limits or input: such a route needs no guard. */
  authenticated(): RouteGuard<CallerVariables, LimitName>
  /** Opens a route to anonymous callers. A token that is sent must be valid. */
  public(): RouteGuard<GuardVariables, LimitName>
  /**
   * Revokes a token, or all tokens of a subject, session, client or tenant that were issued until
   * now. Default: the caller's token, by its `jti`. A token without `jti` is revoked with all tokens
   * of its subject that were issued until now, the same second included. A revocation is in force on
   * the next request, in every isolate. Throws `Unavailable` if it may not have been stored.
   */
  revoke(c: Context, target?: RevocationTarget): Promise<void>
}

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
  const declarations = new Map<MiddlewareHandler, Declaration>()
  const declarationOf: DeclarationOf = (handler) => declarations.get(handler)
  const build = (given: GuardOptions) => createGuarded(given, declarationOf)
  const fixed = typeof options === 'function' ? undefined : build(options)

  function buildFor(env: object): Outcome {
    try {
      const guarded = build(optionsFor(options, env))
      for (const declaration of declarations.values()) guarded.declare(declaration)
      return { guarded }
    } catch (error) {
      return { refusal: refuseAll(error) }
    }
  }

  const outcomeOf = onceForEach(fixed === undefined ? buildFor : () => ({ guarded: fixed }))

  function createHandler(declaration: Declaration): MiddlewareHandler {
    fixed?.declare(declaration)
    const handler: MiddlewareHandler = function routeGuard(c, next) {
      const { guarded, planned } = requireState(c, declarationOf, declaration.text)
      return guarded.access(declaration, planned.has(declaration))(c, next)
    }
    declarations.set(handler, declaration)
    return handler
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

  return Object.assign(guard, {
    require(permission: string | PermissionDemand) {
      const demand = typeof permission === 'string' ? { name: permission } : permission
      const text = `guard.require('${demand.name}')`
      if (!PERMISSION.test(demand.name))
        throw new Misconfigured(text, ['must be a permission such as notes:read'])
      const declaration = { ...UNDECLARED, text, permission: demand }
      return routeGuard<CallerVariables, LimitName>(declaration, createHandler)
    },
    authenticated() {
      const declaration = { ...UNDECLARED, text: 'guard.authenticated()' }
      return routeGuard<CallerVariables, LimitName>(declaration, createHandler)
    },
    public() {
      const declaration = { ...UNDECLARED, text: 'guard.public()', anonymous: true }
      return routeGuard<GuardVariables, LimitName>(declaration, createHandler)
    },
    revoke(c: Context, target?: RevocationTarget) {
      const { guarded } = requireState(c, declarationOf, 'guard.revoke()')
      return guarded.revoke(callerOf(c, 'guard.revoke'), target)
    },
  })
}

type Outcome = { readonly guarded: Guarded } | { readonly refusal: Hono }

const UNDECLARED: Omit<Declaration, 'id' | 'text'> = {
  anonymous: false,
  permission: undefined,
  limits: [],
  maxBodyBytes: undefined,
  input: {},
}

/** Returns the options for an environment. Throws `Misconfigured` if the function throws. */
function optionsFor<Bindings extends object>(
  options: GuardOptions | ((env: Bindings) => GuardOptions),
  env: object,
): GuardOptions {
  if (typeof options !== 'function') return options
  try {
    return options(env as Bindings)
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: 'Error', message: 'unknown' }
    throw new Misconfigured(OPTIONS, [`the function threw ${name}: ${message}`])
  }
}
