/** The gateway: one pipeline, read top to bottom. */
import type { Hono, MiddlewareHandler } from 'hono'
import { METHOD_NAME_ALL } from 'hono/router'
import type { RouterRoute } from 'hono/types'
import type { RelationChecker } from '../access/relations/checker.ts'
import { Denied } from '../errors.ts'
import { createApp, createRouter } from '../http/router.ts'
import { createAudit } from '../middleware/audit.ts'
import { canonicalPath } from '../middleware/canonical-path.ts'
import { clientAddress } from '../middleware/client-address.ts'
import type { GatewayVariables } from '../middleware/context.ts'
import { drainOnRefusal } from '../middleware/drain-on-refusal.ts'
import { inOrder, observed, type StageObserver, stage } from '../middleware/in-order.ts'
import { inspect } from '../middleware/inspect.ts'
import { leaveAuthorization } from '../middleware/leave-authorization.ts'
import { createStreamWatch, watchHandlers, watchOwn } from '../middleware/open-stream.ts'
import { problemHandler } from '../middleware/problem-handler.ts'
import { createReadmission } from '../middleware/readmit.ts'
import { refuseLookAlikes } from '../middleware/refuse-look-alikes.ts'
import type { RelationOptions } from '../middleware/relation.ts'
import { requestId } from '../middleware/request-id.ts'
import { requireResource } from '../middleware/require-resource.ts'
import { sanitizeHeaders } from '../middleware/sanitize-headers.ts'
import { shedLoad } from '../middleware/shed-load.ts'
import { coalescedOrigin } from '../origin/coalesced-origin.ts'
import { DEFAULT_RECHECK_GRACE_SECONDS } from '../policy/defaults.ts'
import { findLookAlikes } from '../policy/look-alikes.ts'
import type { Policy, PolicyRoute } from '../policy/policy.ts'
import { pathOfRoute } from '../policy/route.ts'
import { metricsCall } from '../routes/admin/metrics.ts'
import { healthRoutes } from '../routes/health.ts'
import { proxy } from '../routes/proxy.ts'
import { wellKnownRoutes } from '../routes/well-known.ts'
import { createOpenStreams } from '../streams/open-streams.ts'
import { streamsOfWorkers } from '../streams/stream-runtime.ts'
import type { RuleOf } from '../validators/findings.ts'
import type { Services } from './compose-services.ts'
import type { RouteStages } from './feature.ts'
import { readmittedBy, sharedGuards } from './guards.ts'

/** No route has this method. Its handlers answer only preflight requests. */
const PREFLIGHT = 'OPTIONS'

export type Gateway = Hono<{ Variables: GatewayVariables }>

/**
 * Builds the gateway from its services and a checked policy. Requests that match no route of the
 * policy end with 404 or 405 and never reach an origin. HEAD is handled like GET.
 *
 * `observe` sees each stage of a request, to explain its decision. Default: none, at no cost.
 */
export function createGateway(
  services: Services,
  policy: Policy,
  observe?: StageObserver,
): Gateway {
  const { admission, authorizer, auditSink, origin } = services
  const { assertions, relations: checker, publicUrl, sources, addressOf, upgrades } = services
  const { publicOriginOf, locateFor, openResponses, inFlight, now } = services
  const { contributions = [], apps = [], explains = false } = services
  const calls = services.calls ?? [metricsCall({ ...services.metrics, now })]
  const sendNonces = policy.tokens.dpopNonceRequired
  const { problemBaseUrl } = policy
  const onError = problemHandler({ publicUrl, problemBaseUrl, now })
  const compose = (stages: readonly MiddlewareHandler[]) =>
    inOrder(observe === undefined ? stages : observed(stages, observe), onError)

  const traces = contributions.find((each) => each.traces)?.traces
  const traced = traces === undefined ? [] : [traces.trace]
  const beginning = compose([requestId(traces), drainOnRefusal(), ...traced])
  const health = healthRoutes(services)
  const documents: Hono[] = []
  for (const placed of apps) {
    if (placed.at === '/-') health.route('/', placed.app)
    if (placed.at === '/.well-known') documents.push(placed.app)
  }
  const resource = { ...services, issuers: services.tokenIssuers }
  const wellKnown = wellKnownRoutes(resource, policy.routes, documents)

  const { headers: tokenHeaders = [], cookies = [] } = sources ?? {}
  const tokenCookies = [...cookies, ...contributions.flatMap((each) => each.cookies ?? [])]
  const { maxConcurrentRequests, maxOpenResponses, keepHeaders } = policy
  const { maxHeaderBytes, maxTokenBytes } = policy
  const stripHeaders = [
    ...(policy.stripHeaders ?? []),
    ...tokenHeaders,
    ...policy.identityHeaders.keys(),
  ]
  const recorder = createAudit({ sink: auditSink, now, decided: services.decided })
  const hygiene = compose([
    ...contributions.flatMap(({ around }) => around ?? []),
    recorder.stage,
    stage(
      'shedLoad',
      shedLoad({ maxConcurrentRequests, maxOpenResponses, openResponses, inFlight, now }),
    ),
    stage('canonicalPath', canonicalPath()),
    stage('sanitizeHeaders', sanitizeHeaders({ stripHeaders, keepHeaders, maxHeaderBytes })),
    stage('clientAddress', clientAddress({ addressOf })),
  ])
  const coalesced = coalescedOrigin({ origin })
  const shared = sharedGuards({ ...services, maxTokenBytes })
  const limitedToResource = requireResource({ publicUrl })
  const { maxStalenessMs } = policy.revocation
  const runtime = services.streams ?? streamsOfWorkers(maxStalenessMs > 0)
  const { isShared } = runtime
  const streams = createOpenStreams({
    recheck: (callers) => admission.recheck(callers),
    now,
    isShared,
  })
  const { violations, references } = services
  const stageParts = { admission, violations, references, explains }
  /** Returns what the features add to a route, in the order of the policy. */
  const stagesOf = (route: PolicyRoute): readonly RouteStages[] =>
    contributions.flatMap(
      (each) =>
        each.stagesOf?.(route, {
          ...stageParts,
          watchOwn: watchOwn(createWatch(route), runtime.watch),
        }) ?? [],
    )
  const preflightFeature = contributions.find((each) => each.preflightOf)
  const dispatch = contributions.find((each) => each.dispatch)?.dispatch

  const readmissionOptions = (route: PolicyRoute) => ({
    admission,
    relation: requiredRelation(route, checker),
    ...readmittedBy(route.limits),
  })
  /** Returns how the responses of a route are watched while they are open. */
  const createWatch = (route: PolicyRoute) =>
    createStreamWatch({
      streams,
      terms: {
        recheckMs: (route.recheckSeconds ?? runtime.recheckSeconds) * 1_000,
        graceMs: (route.recheckGraceSeconds ?? DEFAULT_RECHECK_GRACE_SECONDS) * 1_000,
        finishes: route.finishDownloads === true,
        demand: route.authentication,
      },
      readmission:
        route.relation === undefined ? undefined : createReadmission(readmissionOptions(route)),
      ended: recorder.recordEnd,
    })
  /**
   * Returns the guards of a route of the policy or of an operators' call, with the stages of features.
   * With `strict`, as for operators' calls, a revocation is in force at once.
   */
  function guards(
    route: PolicyRoute,
    stages: readonly RouteStages[],
    strict: boolean,
    readmits = !strict,
    ruleOf?: RuleOf,
  ): MiddlewareHandler[] {
    const { permission, permissionMode: mode, limits, maxBodyBytes, dpop, input } = route
    const relation = requiredRelation(route, checker)
    const lookAlikes = strict ? [] : findLookAlikes(route, policy.routes)
    const anonymous = permission === undefined
    const caller = {
      limits,
      maxBodyBytes,
      anonymous,
      dpop,
      authentication: route.authentication,
      sendNonces,
      strict,
      relation,
      admitBy: stages.find(({ admit }) => admit)?.admit,
      identify: stages.find(({ identify }) => identify)?.identify,
    }
    const inspected = route.inspect && inspect({ ...route.inspect, authorizer })
    const inspection = stages.reduceRight<MiddlewareHandler | undefined>(
      (next, { inspect }) => inspect?.(next) ?? next,
      inspected,
    )
    const readmission = readmits ? readmittedBy(limits) : undefined
    return [
      matched(route),
      ...(lookAlikes.length > 0 ? [refuseLookAlikes({ lookAlikes })] : []),
      ...(Array.isArray(route.forwardAuthorization)
        ? [leaveAuthorization({ schemes: route.forwardAuthorization, sources })]
        : []),
      ...stages.flatMap(({ arrival }) => arrival ?? []),
      ...shared.ofCaller(caller),
      ...stages.flatMap(({ admitted }) => admitted ?? []),
      limitedToResource,
      ...shared.ofRequest({
        anonymous,
        permission,
        mode,
        relation,
        inspection,
        input: ruleOf && Object.keys(input).length > 0 ? { ...input, ruleOf } : input,
        readmission,
      }),
    ]
  }

  /** Returns the app of some routes of the policy. All apps share what counts or caches. */
  function createRouteApp(routes: readonly PolicyRoute[]): Gateway {
    const app: Gateway = createApp()
    app.onError(onError)
    app.use(beginning)
    app.route('/-', health)
    app.route('/.well-known', wellKnown)
    app.use(hygiene)
    for (const placed of apps) if (placed.at === '/') app.route('/', placed.app)
    for (const { route, handlers, readmits, stages, ruleOf } of calls) {
      const ends = readmits ? [watchHandlers(createWatch(route), runtime.watch)] : []
      const guarded = compose([
        ...guards(route, stages ? [stages] : [], true, readmits, ruleOf),
        ...ends,
      ])
      app.on(route.method, [route.path], guarded, ...handlers)
    }
    // The policy cannot route the gateway's own paths, whatever its patterns are.
    app.all('/-/*', refuseUnknown(app.routes.slice()))
    for (const route of routes) {
      const path = pathOfRoute(route)
      const stages = stagesOf(route)
      const target = route.coalesce
        ? { origin: coalesced, readmission: createReadmission(readmissionOptions(route)) }
        : { origin }
      const forward = stage(
        'proxy',
        proxy({
          ...route,
          ...target,
          path,
          originOf: stages.find(({ originOf }) => originOf)?.originOf,
          assertions,
          tokenCookies,
          addressOf,
          publicOriginOf,
          locate: locateFor?.(route),
          upgrades,
          watchStream: createWatch(route),
          watchResponse: runtime.watch,
        }),
      )
      const beforeOrigin = stages.flatMap(({ response }) => response ?? [])
      app.on(
        route.method,
        [route.path],
        compose([...guards(route, stages, false), ...beforeOrigin, forward]),
      )
      const preflight = preflightFeature?.preflightOf?.(route, stageParts)
      if (preflight !== undefined) app.on(PREFLIGHT, [route.path], preflight)
    }
    app.all('*', refuseUnknown(app.routes))
    return app
  }
  return dispatch?.(createRouteApp) ?? createRouteApp(policy.routes)
}

/**
 * Refuses requests that no route matches: 405 with the methods of every route that has this path
 * (RFC 9110 section 10.2.1), otherwise 404. A route with the method may have left the request to others: 404.
 */
function refuseUnknown(routes: readonly RouterRoute[]): MiddlewareHandler {
  const paths = createRouter<string>()
  for (const { method, path } of routes) {
    if (method !== METHOD_NAME_ALL && method !== PREFLIGHT) paths.add(METHOD_NAME_ALL, path, method)
  }
  return async function refuseUnknown(c) {
    const [matches] = paths.match(METHOD_NAME_ALL, c.req.path)
    const methods = new Set(matches.map(([method]) => method as string))
    if (methods.has('GET')) methods.add('HEAD')
    throw new Denied(
      methods.size === 0 || methods.has(c.req.method)
        ? { code: 'not_found' }
        : { code: 'method_not_allowed', allow: [...methods].sort() },
    )
  }
}

/** Returns the relation that a route requires. Throws if no stage would check it. */
function requiredRelation(
  { relation: rule, permission }: PolicyRoute,
  checker: RelationChecker | undefined,
): RelationOptions | undefined {
  if (rule === undefined) return undefined
  if (checker !== undefined && permission !== undefined) return { rule, checker }
  throw new Error(
    `relation ${rule.name}: the route needs a permission and the gateway a relation checker`,
  )
}

/** Sets `route`, the matched row of the route table, for the later stages. */
function matched(route: PolicyRoute): MiddlewareHandler<{ Variables: GatewayVariables }> {
  return function matchedRoute(c, next) {
    c.set('portcullis.route', route)
    return next()
  }
}
