/** Guards handlers of `Request` and `Response`: those of Next, SvelteKit, Remix, Astro and others. */
import type { Context } from 'hono'
import type { Principal } from '../access/principal.ts'
import { ProblemError } from '../errors.ts'
import { createBuilds } from '../guard/builds.ts'
import { platformAddress } from '../guard/client-address.ts'
import type { Declaration } from '../guard/declaration.ts'
import { onceForEach } from '../guard/environment.ts'
import { setParams, validInput, type With } from '../guard/input.ts'
import type { OnlyKnown, GuardOptions as OptionsOf } from '../guard/options.ts'
import {
  type GuardMethods,
  guardMethods,
  type RouteGuardType,
  type RouteSteps,
} from '../guard/route-guards.ts'
import { type Admission, createAdmitted, createRunner, OF_RUN } from '../guard/run.ts'
import { type BodyVariables, callerOf } from '../middleware/context.ts'
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

interface OfFetch<Caller extends Principal | null, LimitName extends string>
  extends RouteGuardType {
  readonly guard: RouteGuard<Caller, LimitName, With<this['valid'], this['part'], this['schema']>>
}

/**
 * The guard of a route. Each method except `handle` returns a new guard, so a part of a declaration can
 * be shared.
 */
export interface RouteGuard<
  Caller extends Principal | null,
  LimitName extends string,
  Valid = object,
> extends RouteSteps<OfFetch<Caller, LimitName>, LimitName, Valid> {
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
}

/** A value from the environment may be undefined in the types: the check at the start names it. */
export type GuardOptions<
  LimitName extends string = string,
  Permission extends string = string,
> = OptionsOf<LimitName, Permission, Request>

/** The guard of an app. `revoke` gets the request of the handler. */
export interface Guard<LimitName extends string = string, Permission extends string = string>
  extends GuardMethods<
    RouteGuard<Principal, LimitName>,
    RouteGuard<Principal | null, LimitName>,
    Permission,
    Request
  > {}

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
  const requests = createAdmitted<Admission>()

  const createGuard = (declaration: Declaration) => {
    const demand = {
      declarations: [declaration],
      path: null,
      anonymous: declaration.anonymous,
    }
    return {
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
            requests.add(request, { c, guarded })
            call.replaceRequest(request)
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
  }

  return guardMethods(builds, { handlerOf: createGuard, admissionOf: requests.require })
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
