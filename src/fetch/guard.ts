/** Guards handlers of `Request` and `Response`: those of Next, SvelteKit, Remix, Astro and others. */
import type { Context } from 'hono'
import type { $ZodType } from 'zod/v4/core'
import type { Principal } from '../access/principal.ts'
import { OutOfOrder, ProblemError } from '../errors.ts'
import { createBuilds } from '../guard/builds.ts'
import { platformAddress } from '../guard/client-address.ts'
import { createRouteGuards, type Declaration } from '../guard/declaration.ts'
import { onceForEach } from '../guard/environment.ts'
import { setParams, validInput, type With } from '../guard/input.ts'
import type { OnlyKnown, GuardOptions as OptionsOf, Suggested } from '../guard/options.ts'
import type { RevocationTarget } from '../guard/revoke.ts'
import { contextOf, createRunner, keepContext, OF_RUN, type Run, revokeFor } from '../guard/run.ts'
import { type BodyVariables, callerOf } from '../middleware/context.ts'
import type { PermissionDemand } from '../policy/definition.ts'
import { callOf } from './call.ts'

/** What the guard gives to a handler, besides the request. */
export interface GuardedCall<
  Caller extends Principal | null = Principal,
  Valid = object,
  Args extends readonly unknown[] = readonly unknown[],
> {
  /** The verified caller. */
  readonly caller: Caller
  /** What the schemas of the route returned: `valid.body`, `valid.query`, `valid.params`, `valid.headers`. */
  readonly valid: Valid
  /** What the framework passed: its request or event, and what came after it. */
  readonly args: Args
}

/**
 * The guard of a route. Each method except `handle` returns a new guard, so a part of a declaration can
 * be shared.
 */
export interface RouteGuard<
  Caller extends Principal | null,
  LimitName extends string,
  Valid = object,
> {
  /**
   * Returns the function that the framework calls, with a `Request` or with an object that has it as
   * `request`. The handler gets the request, whose body can be read even if the guard has checked it.
   */
  handle<Args extends readonly unknown[]>(
    handler: (
      request: Request,
      guarded: GuardedCall<Caller, Valid, Args>,
    ) => Response | Promise<Response>,
  ): (...args: Args) => Promise<Response>
  /** Requires a JSON body that matches: `valid.body`. */
  body<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Caller, LimitName, With<Valid, 'body', Schema>>
  /** Requires a query that matches: `valid.query`. Only parameters of `z.array` may be repeated. */
  query<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Caller, LimitName, With<Valid, 'query', Schema>>
  /** Requires path parameters that match: `valid.params`. */
  params<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Caller, LimitName, With<Valid, 'params', Schema>>
  /** Requires headers that match, by lower-case name: `valid.headers`. */
  headers<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Caller, LimitName, With<Valid, 'headers', Schema>>
  /** Counts these limits in addition to `standard`. */
  limit(...names: [LimitName, ...LimitName[]]): RouteGuard<Caller, LimitName, Valid>
  /** Replaces the guard's limit of the body; 0 forbids a body. */
  maxBodyBytes(bytes: number): RouteGuard<Caller, LimitName, Valid>
}

/** A value from the environment may be undefined in the types: the check at the start names it. */
export type GuardOptions<
  LimitName extends string = string,
  Permission extends string = string,
> = OptionsOf<LimitName, Permission, Request>

export interface Guard<LimitName extends string = string, Permission extends string = string> {
  /** Guards a handler: callers need this permission, from their roles and scopes. */
  require(permission: Suggested<Permission> | PermissionDemand): RouteGuard<Principal, LimitName>
  /** Guards a handler for any identified caller. */
  authenticated(): RouteGuard<Principal, LimitName>
  /** Opens a handler to anonymous callers. A token that is sent must be valid. */
  public(): RouteGuard<Principal | null, LimitName>
  /**
   * Revokes a token, or all tokens of a subject, session, client or tenant that were issued until now.
   * `request` is that of the handler. Default: the caller's token, by its `jti`. A token without `jti` is
   * revoked with all tokens of its subject that were issued until now, the same second included. A
   * revocation is in force on the next request, in every isolate. Throws `Unavailable` if it may not have
   * been stored.
   */
  revoke(request: Request, target?: RevocationTarget): Promise<void>
}

/**
 * Creates the guard of an app. Each function that `handle` returns identifies the caller, checks
 * revocation, bans and limits in one round trip to Redis, checks the permission and the input, and
 * records an audit event. A request that is refused gets a problem document, and reaches no handler.
 *
 * Options may be a function of the environment. Wrong options throw one `Misconfigured` with all mistakes;
 * those of a function are logged, and each request gets the problem `misconfigured`.
 *
 * @example
 * ```ts
 * const guard = portcullis({ issuers, redis, roles: { reader: ['notes:read'] } })
 * // app/notes/route.ts of Next
 * export const GET = guard.require('notes:read').handle((request, { caller }) =>
 *   Response.json({ notesOf: caller.subject }),
 * )
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
): Guard<LimitName, Permission> {
  const builds = createBuilds(options, () => ({ ...OF_RUN, loadsLate: true }))
  const outcomeFor = onceForEach(builds.build)
  const run = createRunner()
  const guards = new WeakMap<Request, Run['guarded']>()

  const createGuard = (declaration: Declaration) => {
    const demand = {
      declarations: [declaration],
      path: null,
      anonymous: declaration.anonymous,
    }
    const guard = {
      handle: (handler: Handler) =>
        async function guarded(...args: readonly unknown[]): Promise<Response> {
          const call = callOf(args)
          const outcome = outcomeFor(call)
          if ('refusal' in outcome) return outcome.refusal.fetch(call.request)
          const { guarded } = outcome
          const failures: unknown[] = []
          let admitted: Context | undefined
          const handle = async (c: Context): Promise<Response> => {
            admitted = c
            if (declaration.input.params !== undefined) setParams(c, await call.params())
            await guarded.access(declaration, true)(c, async () => {})
            const request = readable(c)
            guards.set(request, guarded)
            keepContext(request, c)
            const valid = validInput(c, declaration.input)
            try {
              // The declaration determines the types.
              return await handler(request, { caller: callerOf(c, 'guard'), valid, args } as never)
            } catch (error) {
              if (error instanceof ProblemError) throw error
              // Some frameworks throw redirects and errors with a response of their own.
              failures.push(error)
              return new Response(null, { status: statusOf(error) })
            }
          }
          const { request, context, beside } = call
          const address = (c: Context) => call.address() ?? platformAddress(c, beside)
          const response = await run(
            request,
            { guarded, demand, source: request, address, handle },
            context,
          )
          // A body that is too large is the refusal of a stage, whatever its reader has thrown.
          if (failures.length > 0 && admitted?.error === undefined) throw failures[0]
          return response
        },
    }
    builds.add(guard, declaration)
    return guard
  }

  const { require, authenticated } =
    createRouteGuards<RouteGuard<Principal, LimitName>>(createGuard)
  const ofAnyone = createRouteGuards<RouteGuard<Principal | null, LimitName>>(createGuard)
  return {
    require,
    authenticated,
    public: ofAnyone.public,
    async revoke(request, target) {
      const c = contextOf(request, 'guard.revoke()')
      const guarded = guards.get(request)
      if (guarded === undefined)
        throw new OutOfOrder('guard.revoke(): another guard has admitted this request')
      return revokeFor(guarded, c, target)
    },
  }
}

type Handler = (
  request: Request,
  guarded: GuardedCall<never, never>,
) => Response | Promise<Response>

/** Returns the request with a body that can be read: the guard may have read and checked it. */
function readable(c: Context<{ Variables: Partial<BodyVariables> }>): Request {
  const { raw } = c.req
  const body = c.get('portcullis.body')
  if (!(body instanceof Uint8Array)) return raw
  const { url, method, headers, signal } = raw
  return new Request(url, { method, headers, signal, body: body.slice() })
}

/** The status in the audit event of a request whose handler has thrown. */
function statusOf(error: unknown): number {
  const { status } = (error ?? {}) as { readonly status?: unknown }
  return typeof status === 'number' && status >= 200 && status <= 599 ? status : 500
}
