/** One call guards an app of Express, or of another framework with handlers of Connect. */
import type { Context } from 'hono'
import type { Principal } from '../access/principal.ts'
import { Denied, OutOfOrder } from '../errors.ts'
import { createBuilds } from '../guard/builds.ts'
import type { Declaration } from '../guard/declaration.ts'
import type { Demand, Guarded } from '../guard/guarded.ts'
import { setParams, validInput, type With } from '../guard/input.ts'
import type { OnlyKnown, GuardOptions as OptionsOf } from '../guard/options.ts'
import {
  type GuardMethods,
  guardMethods,
  type RouteGuardType,
  type RouteSteps,
} from '../guard/route-guards.ts'
import { createAdmitted, createRunner, OF_RUN, type Run } from '../guard/run.ts'
import { callerOf, type GatewayVariables } from '../middleware/context.ts'
import { setRateLimitHeaders } from '../middleware/rate-limit-headers.ts'
import type {
  ConnectHandler,
  ConnectRequest,
  ConnectResponse,
  Next,
  NodeRequest,
  NodeResponse,
} from './connect.ts'
import { declarationsAhead } from './look-ahead.ts'
import { hasBody, isBodyLost, isRewritten, isTooLong, limitUnread, requestOf } from './request.ts'
import { send, sentResponse, watchWith } from './responses.ts'

/** What the guard adds to a request. */
export interface GuardedRequest<
  Caller extends Principal | null = Principal | null,
  Valid = Readonly<Record<string, unknown>>,
> {
  /** The verified caller. Null for an anonymous caller of a public route. */
  caller: Caller
  /** What the schemas of the route returned: `valid.body`, `valid.query`, `valid.params`, `valid.headers`. */
  valid: Valid
}

interface OfConnect<Caller extends Principal | null, LimitName extends string>
  extends RouteGuardType {
  readonly guard: RouteGuard<Caller, LimitName, With<this['valid'], this['part'], this['schema']>>
}

/**
 * The guard of a route. Each method except `handle` returns a new guard, so a part of a declaration can be shared.
 * `req.valid` has what the schemas returned, and `req.body` what that of the body returned.
 */
export interface RouteGuard<
  Caller extends Principal | null,
  LimitName extends string,
  Valid = object,
> extends ConnectHandler,
    RouteSteps<OfConnect<Caller, LimitName>, LimitName, Valid> {
  /**
   * Returns the guard and a handler as one, with the types of the caller and of the input. What the handler
   * throws, or rejects with, is passed to `next`.
   */
  handle<Req = ConnectRequest, Res = ConnectResponse>(
    handler: (req: Req & GuardedRequest<Caller, Valid>, res: Res, next: Next) => unknown,
  ): (req: Req, res: Res, next: Next) => void
}

/** A value from the environment may be undefined in the types: the check at the start names it. */
export type GuardOptions<
  LimitName extends string = string,
  Permission extends string = string,
> = OptionsOf<LimitName, Permission, ConnectRequest>

type Methods<LimitName extends string, Permission extends string> = GuardMethods<
  RouteGuard<Principal, LimitName>,
  RouteGuard<Principal | null, LimitName>,
  Permission,
  object
>

/**
 * The guard of an app. Behind `app.use(guard)`, a route without limits or input needs no `authenticated()`. A route
 * with `public()` must come before `app.use(guard)`, which refuses anonymous callers.
 */
export interface Guard<LimitName extends string = string, Permission extends string = string>
  extends ConnectHandler,
    Methods<LimitName, Permission> {}

/** The state of a guard for a request. */
interface State {
  readonly c: Context
  readonly guarded: Guarded
  /** The declarations with limits that are counted already. */
  readonly planned: ReadonlySet<Declaration>
  /** The declarations of the guards that the request has reached. */
  readonly entered: Declaration[]
  /** Refuses the request: the stages see the error, and its response is sent. */
  refuse(error: Error): void
}

/** What a run has, besides what every framework has. */
interface ConnectRun extends Run {
  readonly req: NodeRequest
  readonly res: NodeResponse
  readonly isUrl: boolean
}

const runOf = (c: Context): ConnectRun => c.env as unknown as ConnectRun

/**
 * Creates the guard of an app. `app.use(guard)` identifies the caller, checks revocation, bans and limits
 * in one round trip to Redis, and records an audit event. Every route behind it needs a valid token, also
 * a route that declares nothing. `guard.require()` and the others also guard a route without it.
 *
 * A request that is refused gets a problem document, and reaches no handler: neither `next()` nor
 * `next(error)` is called. Wrong options throw one `Misconfigured` with all mistakes. Options may be a
 * function of `process.env`: then mistakes are logged, and each request gets the problem `misconfigured`.
 *
 * @example
 * ```ts
 * const guard = portcullis({ issuers, redis, roles: { reader: ['notes:read'] } })
 * app.get('/about', guard.public(), (req, res) => res.json({ caller: req.caller }))
 * app.use(guard)
 * app.get('/notes', guard.require('notes:read'), (req, res) => res.json(req.caller?.subject))
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
  const builds = createBuilds(options, () => ({
    ...OF_RUN,
    beforeCaller: checkMessage,
    watchWith: watchWith((c) => runOf(c).res),
  }))
  const { declarationOf } = builds
  const run = createRunner()
  const states = createAdmitted<State>()
  let outcome: ReturnType<typeof builds.build> | undefined

  /** Admits the request, and calls `proceed` with its state. Sends the response of a refusal. */
  async function admit(
    req: NodeRequest,
    res: NodeResponse,
    demand: Demand,
    proceed: (state: State) => Promise<void> | void,
  ): Promise<void> {
    // The client has left: it reads no response, and the address of the connection is gone.
    if (res.closed || res.destroyed) return
    outcome ??= builds.build(PROCESS)
    const { request, isUrl } = requestOf(req)
    if ('refusal' in outcome) return send(await outcome.refusal.fetch(request), req, res)
    const { guarded } = outcome
    let isOfApp = false
    const handle = (c: Context): Promise<Response> =>
      new Promise((resolve, reject) => {
        if (res.closed || res.destroyed) return resolve(sentResponse(res))
        let isComplete = false
        const state: State = {
          c,
          guarded,
          planned: new Set(demand.declarations),
          entered: [],
          refuse(error) {
            if (isComplete) return
            isOfApp = false
            reject(error)
          },
        }
        states.add(req, state)
        isOfApp = true
        res.once('close', () => {
          isComplete = true
          resolve(sentResponse(res))
        })
        Promise.resolve(proceed(state)).catch(state.refuse)
      })
    const address = () => req.ip ?? req.socket?.remoteAddress
    const of: ConnectRun = { guarded, demand, source: req, address, handle, req, res, isUrl }
    const response = await run(request, of)
    if (!isOfApp) await send(response, req, res)
  }

  /** Gives the request to the next handler of the app. */
  function passOn(state: State, req: NodeRequest, res: NodeResponse, next: Next): void {
    const { c } = state
    Object.assign(req, { caller: callerOf(c, 'guard') })
    const { 'portcullis.rateLimits': limits = [], 'portcullis.requestId': id } =
      c.var as Partial<GatewayVariables>
    if (id !== undefined) res.setHeader('X-Request-Id', id)
    setRateLimitHeaders(
      { set: (name, value) => res.setHeader(name, value) },
      limits,
      state.guarded.now(),
    )
    next()
  }

  /** Applies the declaration of a route to a request that is admitted. */
  async function enter(state: State, declaration: Declaration, req: NodeRequest): Promise<void> {
    const { c, guarded, planned, entered } = state
    const { input, text } = declaration
    if (input.body !== undefined && isBodyLost(req))
      throw new OutOfOrder(`${text}: the body was read before the guard, and is not in req.body`)
    entered.push(declaration)
    const maxBytes = maxBytesOf(state, req)
    // The URL was rewritten after the look ahead.
    if (isTooLong(req, maxBytes)) throw new Denied({ code: 'payload_too_large', maxBytes })
    setParams(c, (req.params ?? {}) as Readonly<Record<string, unknown>>)
    setRoute(c, req)
    await guarded.access(declaration, planned.has(declaration))(c, async () => {})
    const valid = validInput(c, input)
    Object.assign(req, { valid })
    // Parsers of the app must not wait for a body that was read.
    if (input.body !== undefined) Object.assign(req, { body: valid.body, _body: true })
  }

  function createGuard(declaration: Declaration): object {
    const guard = function routeGuard(req: NodeRequest, res: NodeResponse, next: Next): void {
      const known = states.get(req)
      if (known !== undefined) {
        enter(known, declaration, req)
          .then(() => passOn(known, req, res, next))
          .catch(known.refuse)
        return
      }
      const { anonymous } = declaration
      const demand = { declarations: [declaration], path: null, anonymous }
      admit(req, res, demand, async (state) => {
        await enter(state, declaration, req)
        if (limitRest(state, req)) passOn(state, req, res, next)
      }).catch((error: unknown) => next(failureOf(error)))
    }
    const handle =
      (handler: (req: NodeRequest, res: NodeResponse, next: Next) => unknown) =>
      (req: NodeRequest, res: NodeResponse, next: Next): void =>
        guard(req, res, async (failure) => {
          // The guard itself has failed: the request is not admitted.
          if (failure !== undefined) return next(failure)
          try {
            await handler(req, res, next)
          } catch (error) {
            next(error)
          }
        })
    return Object.assign(guard, { handle })
  }

  const guard = function guard(req: NodeRequest, res: NodeResponse, next: Next): void {
    const known = states.get(req)
    if (known !== undefined) {
      // A public route came before, and did not answer.
      if (callerOf(known.c, 'guard') === null) known.refuse(new Denied({ code: 'missing_token' }))
      else next()
      return
    }
    const declarations = declarationsAhead(req, declarationOf)
    warnOfPublic(declarations)
    admit(req, res, { declarations, path: null, anonymous: false }, (state) => {
      if (limitRest(state, req)) passOn(state, req, res, next)
    }).catch((error: unknown) => next(failureOf(error)))
  }

  const warned = new Set<Declaration>()
  function warnOfPublic(declarations: readonly Declaration[]): void {
    for (const declaration of declarations) {
      if (!declaration.anonymous || warned.has(declaration)) continue
      warned.add(declaration)
      console.warn(
        `${declaration.text}: the route is behind app.use(guard), which refuses anonymous callers; ` +
          'register it before app.use(guard)',
      )
    }
  }

  const methods: Methods<LimitName, Permission> = guardMethods(builds, {
    handlerOf: createGuard,
    admissionOf: states.require,
  })
  return Object.assign(guard as unknown as ConnectHandler, methods)
}

const PROCESS = (globalThis as { process?: { readonly env: object } }).process?.env ?? {}

/** Sets the route for the audit event. It is not in the demand, because a mounted router can have many paths. */
function setRoute(c: Context<{ Variables: Partial<GatewayVariables> }>, req: NodeRequest): void {
  const { baseUrl = '', route } = req
  if (typeof route?.path !== 'string') return
  const { limits = [] } = c.get('portcullis.route') ?? {}
  c.set('portcullis.route', { path: baseUrl + route.path, limits })
}

/** Refuses a request with an invalid URL, and a GET or HEAD with a body: `Request` accepts neither. */
function checkMessage(c: Context, next: () => Promise<void>): Promise<void> {
  const { req, isUrl } = runOf(c)
  setRoute(c, req)
  if (!isUrl) throw new Denied({ code: 'ambiguous_path', check: 'host' })
  if (hasBody(req) && (c.req.method === 'GET' || c.req.method === 'HEAD'))
    throw new Denied({ code: 'malformed_request', check: 'unexpected_body' })
  return next()
}

/**
 * Returns the largest body, for readers other than the guard: that of the guards that the request has reached, or
 * else of those ahead of it. Once the app has rewritten the URL, these are not ahead any more.
 */
function maxBytesOf({ guarded, planned, entered }: State, req: NodeRequest): number {
  const areAhead = !isRewritten(req) && entered.every((each) => planned.has(each))
  return guarded.maxBodyBytes(areAhead ? [...planned] : entered)
}

/** Limits a body that the handlers of the app read. Returns false if the request was refused. */
function limitRest(state: State, req: NodeRequest): boolean {
  const { guarded, planned } = state
  const maxBytes = () => maxBytesOf(state, req)
  return limitUnread(req, {
    maxBytes,
    mayFall: guarded.maxBodyBytes([...planned]) > guarded.maxBodyBytes([]),
    onExcess: () => state.refuse(new Denied({ code: 'payload_too_large', maxBytes: maxBytes() })),
  })
}

/**
 * Returns what the guard hands on to the error handler. Express takes nothing, and the texts `route` and
 * `router`, for a request that goes on.
 */
const failureOf = (error: unknown): Error =>
  error instanceof Error ? error : new Error('the guard has failed', { cause: error })
