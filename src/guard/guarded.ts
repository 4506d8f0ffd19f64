/** Builds the guards of an app for one environment: the services, and the stages of each route. */
import type { Context, MiddlewareHandler } from 'hono'
import { resolveAbuse } from '../access/abuse/definition.ts'
import { permissionSet } from '../access/permissions.ts'
import type { Principal } from '../access/principal.ts'
import { HANDLER_STAGE } from '../audit/reason.ts'
import { consoleAuditSink } from '../audit/truncate.ts'
import { Misconfigured } from '../errors.ts'
import { guardServices } from '../gateway/guard-services.ts'
import { type CallerDemand, callerGuards, requestGuards } from '../gateway/guards.ts'
import { createAudit } from '../middleware/audit.ts'
import { canonicalPath } from '../middleware/canonical-path.ts'
import { clientAddress } from '../middleware/client-address.ts'
import { callerOf } from '../middleware/context.ts'
import { drainOnRefusal } from '../middleware/drain-on-refusal.ts'
import { inOrder, stage } from '../middleware/in-order.ts'
import { problemHandler } from '../middleware/problem-handler.ts'
import { requestId } from '../middleware/request-id.ts'
import { shedLoad } from '../middleware/shed-load.ts'
import {
  DEFAULT_MAX_BODY_BYTES,
  DEFAULT_MAX_CONCURRENT_REQUESTS,
  DEFAULT_REVOCATION,
} from '../policy/defaults.ts'
import { limitsNamed, nameLimits } from '../policy/limits.ts'
import type { PolicyLimit } from '../policy/policy.ts'
import type { Mistake } from '../problems/mistake.ts'
import { PERMISSION } from '../validators/names.ts'
import type { Declaration, DeclarationOf } from './declaration.ts'
import { type GuardOptions, type RedisClient, STANDARD_LIMIT } from './options.ts'
import { createRevoke } from './revoke.ts'
import { checkedIssuers, OPTIONS } from './schema.ts'
import { connectStorage } from './storage.ts'
import { unknownAddress } from './unknown-address.ts'
import { type WatchWith, watchedResponses } from './watched-responses.ts'

/** What a request needs, by the declarations that apply to it. */
export interface Demand {
  /** In their order. Empty for a route without a declaration. */
  readonly declarations: readonly Declaration[]
  /** The pattern of the route. Null if only middlewares match. */
  readonly path: string | null
  /** Whether anonymous callers are admitted. */
  readonly anonymous: boolean
}

/** What the guards need from the framework of the app. The stages run with a context of Hono for each of them. */
export interface Framework {
  /** Returns what a request needs, as far as it is known before its handlers run. */
  readonly demandOf: (c: Context) => Demand
  /** Keeps an anonymous caller of a public route out of the other routes. Default: the framework cannot reach them. */
  readonly closeUndeclared?: (c: Context) => void
  /** Returns the client's address, unless the options do. */
  readonly addressOf: (c: Context) => string | undefined
  /** Returns what `clientAddress` of the options gets. Default: the context. */
  readonly sourceOf?: (c: Context) => object
  /** Comes before the stages that read the request. Default none. */
  readonly beforeCaller?: MiddlewareHandler
  /** Whether modules of the app load with their first request, and declare their routes then. Default false. */
  readonly loadsLate?: boolean
  /** Watches open responses. Default: as those of Hono's handlers. */
  readonly watchWith?: WatchWith
}

/** The guards of an app for one environment. */
export type Guarded = ReturnType<typeof createGuarded>

/** The state of a guard for a request. */
export interface GuardState {
  readonly guarded: Guarded
  /** The declarations with limits that are counted already. */
  readonly planned: ReadonlySet<Declaration>
}

interface GuardedVariables {
  'portcullis.guard': GuardState
  caller: Principal | null
}

const DECLARED_LATE =
  'the scopes of a token were judged before, without this permission; ' +
  'load the module at the start, or set lateRoutes: true'

/**
 * Builds the services and the stages from the options. Throws one `Misconfigured` with all mistakes
 * of the options.
 */
export function createGuarded(
  options: GuardOptions,
  declarationOf: DeclarationOf,
  framework: Framework,
) {
  const issuers = checkedIssuers(options)
  const { stores, revocations, watch, hasFeed, now } = connectStorage(options)
  const roles = new Map(Object.entries(options.roles ?? {}))
  const asked = { ...DEFAULT_REVOCATION, ...options.revocation }
  const revocation = hasFeed ? asked : { ...asked, maxStalenessMs: 0 }
  const { maxTokenBytes } = options
  const built = guardServices({
    stores,
    policy: {
      roles,
      abuse: resolveAbuse(options.abuse),
      revocation,
    },
    maxCachedBytes: options.tokenCacheBytes,
    issuers,
    watch,
    now,
  })
  /** Whether scopes of a verified token were judged. */
  let hasJudged = false
  const judge: typeof built.authorizer = Object.assign(
    (...judged: Parameters<typeof built.authorizer>) => {
      hasJudged = true
      return built.authorizer(...judged)
    },
    built.authorizer,
  )
  const services = { ...built, authorizer: judge, maxTokenBytes }
  const loadsLate = framework.loadsLate === true || options.lateRoutes === true
  if (loadsLate) services.authorizer.expectMore(PERMISSION)
  /** Undefined: without roles, every permission is one of scopes. */
  const ofRoles = roles.size === 0 ? undefined : permissionSet([...roles.values()].flat())
  const named = permissionSet([...roles.values()].flat().filter((pattern) => pattern !== '*'))
  /** Permissions of routes. */
  const declared = new Set<string>()
  /** Permissions that were logged because no role grants them. */
  const warned = new Set<string>()
  const limits = nameLimits(options.limits ?? {})
  const uncountable = (options.redis as RedisClient).mistakesIn?.(limits) ?? []
  if (uncountable.length > 0) throw new Misconfigured(OPTIONS, uncountable)
  const defaultMaxBytes = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES
  const onError = problemHandler({ now })
  const audit = createAudit({ sink: options.audit ?? consoleAuditSink(), now })
  const { recheckSeconds, recheckGraceSeconds } = options
  const ended = watchedResponses({
    admission: services.admission,
    audit,
    hasFeed: revocation.maxStalenessMs > 0,
    recheckSeconds,
    recheckGraceSeconds,
    watchWith: framework.watchWith,
    now,
  })
  const unknown = unknownAddress()
  const maxConcurrentRequests = options.maxConcurrentRequests ?? DEFAULT_MAX_CONCURRENT_REQUESTS

  const { sourceOf = (c: Context) => c } = framework
  const addressOf =
    options.clientAddress === undefined
      ? framework.addressOf
      : // The framework determines both types.
        (c: Context) => options.clientAddress?.(sourceOf(c) as never)

  /** Returns the limits of these names. Throws `Misconfigured` for an unknown name, except `standard`. */
  function limitsOfDemand(names: readonly string[]): PolicyLimit[] {
    const mistakes = unknownLimits(names.filter((name) => name !== STANDARD_LIMIT))
    if (mistakes.length > 0) throw new Misconfigured(OPTIONS, mistakes)
    return [...new Set(names)].flatMap((name) => limitsNamed(limits, name))
  }

  function unknownLimits(names: readonly string[]): Mistake[] {
    const known = [...limits.keys()].map((name) => `"${name}"`).join(', ') || 'none'
    return names
      .filter((name) => !limits.has(name))
      .map((name) => ({
        code: 'unknown_limit',
        path: [],
        message: `unknown limit "${name}"; the options have ${known}`,
        given: name,
        known: [...limits.keys()],
      }))
  }

  function maxBytesOf(declarations: readonly Declaration[]): number {
    const own = declarations.findLast(({ maxBodyBytes }) => maxBodyBytes !== undefined)
    return own?.maxBodyBytes ?? defaultMaxBytes
  }

  function composeGuards({ declarations, anonymous, path }: Demand): MiddlewareHandler {
    const named = declarations.flatMap((declaration) => declaration.limits)
    const demand: CallerDemand = {
      limits: limitsOfDemand([STANDARD_LIMIT, ...named]),
      maxBodyBytes: maxBytesOf(declarations),
      ofRequest: true,
      anonymous,
      admitBy: unknown.admitKnown,
    }
    const planned = new Set(declarations)
    const route = path === null ? undefined : { path, limits: demand.limits }
    const admitted: MiddlewareHandler<{ Variables: GuardedVariables }> = (c, next) => {
      c.set('portcullis.guard', { guarded, planned })
      c.set('caller', callerOf(c, 'guard'))
      return next()
    }
    const stages = inOrder(
      [...callerGuards(services, demand), ended, stage(HANDLER_STAGE, admitted)],
      onError,
    )
    return function guards(c, next) {
      if (route !== undefined) c.set('portcullis.route', route)
      return stages(c, next)
    }
  }

  /** By pattern and declarations, both of which the app determines. */
  const plans = new Map<string, MiddlewareHandler>()

  const planned: MiddlewareHandler = (c, next) => {
    const demand = framework.demandOf(c)
    const ids = demand.declarations.map(({ id }) => id)
    const key = `${demand.anonymous} ${ids.join(' ')} ${demand.path}`
    let plan = plans.get(key)
    if (plan === undefined) {
      plan = composeGuards(demand)
      plans.set(key, plan)
    }
    if (!demand.anonymous) return plan(c, next)
    return plan(c, () => {
      if (callerOf(c, 'guard') === null) framework.closeUndeclared?.(c)
      return next()
    })
  }

  const accesses = new Map<string, MiddlewareHandler>()

  function accessOf(declaration: Declaration, isPlanned: boolean): MiddlewareHandler {
    const { permission, anonymous, maxBodyBytes, input } = declaration
    const own = limitsOfDemand(declaration.limits)
    const isLimited = own.length > 0 || limits.has(STANDARD_LIMIT)
    const late =
      isPlanned || (own.length === 0 && maxBodyBytes === undefined)
        ? []
        : callerGuards(services, {
            limits: own,
            maxBodyBytes: maxBodyBytes ?? defaultMaxBytes,
            ofRequest: true,
            anonymous,
            admitBy: unknown.admitKnown,
          })
    const handle: MiddlewareHandler = (_, next) => next()
    return inOrder([
      ...late,
      ...requestGuards(services, {
        anonymous,
        permission: permission?.name,
        mode: permission?.mode,
        input: { ...input, forwards: false },
        readmission: { isLimited, passesOutage: false },
      }),
      stage(HANDLER_STAGE, handle),
    ])
  }

  const guarded = {
    /** Identifies the guard, for whatever environment it is built. */
    declarationOf,
    /** Every stage up to the admission of the caller. */
    admit: inOrder(
      [
        requestId(),
        drainOnRefusal(),
        audit.stage,
        stage('shedLoad', shedLoad({ maxConcurrentRequests, now })),
        stage('canonicalPath', canonicalPath()),
        stage('clientAddress', clientAddress({ addressOf })),
        unknown.report,
        ...(framework.beforeCaller === undefined ? [] : [framework.beforeCaller]),
        planned,
      ],
      onError,
    ),
    /** Returns the stages that a route declares, after the admission. */
    access(declaration: Declaration, isPlanned: boolean): MiddlewareHandler {
      const key = `${declaration.id} ${isPlanned}`
      let access = accesses.get(key)
      if (access === undefined) {
        access = accessOf(declaration, isPlanned)
        accesses.set(key, access)
      }
      return access
    },
    /**
     * Adds a route. Throws `Misconfigured` if it names a limit that the options do not have. After the scopes of a
     * verified token were judged, it also throws for a permission by which they were not. A request without such
     * a token changes nothing, so no anonymous caller decides whether an app starts.
     */
    declare({ text, permission, limits: names }: Declaration): void {
      const mistakes = unknownLimits(names)
      if (mistakes.length > 0) throw new Misconfigured(text, mistakes)
      if (permission === undefined) return
      const isNew = !declared.has(permission.name) && !named.covers(permission.name)
      if (hasJudged && isNew && !loadsLate && ofRoles !== undefined)
        throw new Misconfigured(text, [DECLARED_LATE])
      declared.add(permission.name)
      // Before the first request: the permissions decide what a scope means.
      services.authorizer.declare?.([permission.name])
      if (ofRoles === undefined || ofRoles.covers(permission.name) || warned.has(permission.name))
        return
      warned.add(permission.name)
      console.warn(`${text}: no role of the options grants it; only scopes of a token can`)
    },
    /** Returns the largest body of a request with these declarations. */
    maxBodyBytes: maxBytesOf,
    /** Milliseconds since the epoch. */
    now,
    /** Turns an error of a stage into its response. */
    onError,
    revoke: createRevoke({ issuers, revocations, now }),
  }
  return guarded
}
