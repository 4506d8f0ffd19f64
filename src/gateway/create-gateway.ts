/** The gateway: one pipeline, read top to bottom. */
import { Hono, type MiddlewareHandler } from 'hono'
import { METHOD_NAME_ALL } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { RouterRoute } from 'hono/types'
import { Denied } from '../errors.ts'
import { admit } from '../middleware/admit.ts'
import { audit } from '../middleware/audit.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { authorize } from '../middleware/authorize.ts'
import { banOffenders } from '../middleware/ban-offenders.ts'
import { canonicalPath } from '../middleware/canonical-path.ts'
import { clientAddress } from '../middleware/client-address.ts'
import type { GatewayVariables } from '../middleware/context.ts'
import { drainOnRefusal } from '../middleware/drain-on-refusal.ts'
import { inOrder, stage } from '../middleware/in-order.ts'
import { inspect } from '../middleware/inspect.ts'
import { limitBody } from '../middleware/limit-body.ts'
import { problemHandler } from '../middleware/problem-handler.ts'
import { createReadmission, readmit } from '../middleware/readmit.ts'
import { refuseLookAlikes } from '../middleware/refuse-look-alikes.ts'
import type { RelationOptions } from '../middleware/relation.ts'
import { requestId } from '../middleware/request-id.ts'
import { sanitizeHeaders } from '../middleware/sanitize-headers.ts'
import { serverTiming } from '../middleware/server-timing.ts'
import { shedLoad } from '../middleware/shed-load.ts'
import { throttle } from '../middleware/throttle.ts'
import { validate } from '../middleware/validate.ts'
import { coalescedOrigin } from '../origin/coalesced-origin.ts'
import { lookAlikesOf } from '../policy/look-alikes.ts'
import type { Policy, PolicyRoute } from '../policy/policy.ts'
import type { RelationChecker } from '../relations/checker.ts'
import { healthRoutes } from '../routes/health.ts'
import { metricsCall } from '../routes/metrics.ts'
import { proxy } from '../routes/proxy.ts'
import { wellKnownRoutes } from '../routes/well-known.ts'
import type { Services } from './compose-services.ts'

export type Gateway = Hono<{ Variables: GatewayVariables }>

/**
 * Builds the gateway from its services and a checked policy. Requests that match no route of the
 * policy end with 404 or 405 and never reach an origin. HEAD is handled like GET.
 */
export function createGateway(services: Services, policy: Policy): Gateway {
  const { verifier, references, proofs, admission, authorizer, auditSink, origin } = services
  const { assertions, failures, violations, relations: checker, publicUrl } = services
  const { operatorCalls = [], authorizationServer, description, spans } = services
  const sendNonces = policy.tokens.dpopNonceRequired
  const app: Gateway = new Hono()
  const onError = problemHandler({ publicUrl })
  app.onError(onError)

  const traced = spans === undefined ? [] : [spans.trace]
  app.use(inOrder([requestId(spans), drainOnRefusal(), ...traced], onError))
  app.route('/-', healthRoutes(services))
  app.route('/.well-known', wellKnownRoutes(services))
  if (authorizationServer !== undefined) app.route('/.well-known', authorizationServer.metadata)
  const calls = [...operatorCalls, metricsCall({ ...services.metrics, now: services.now })]
  if (description !== undefined) {
    const operations = calls.map(({ operation }) => operation)
    const issuesTokens = authorizationServer !== undefined
    app.route('/-', description({ publicUrl, issuesTokens, operations }))
  }

  const { maxConcurrentRequests, stripHeaders, keepHeaders } = policy
  const hygiene = [
    audit({ sink: auditSink }),
    stage('shedLoad', shedLoad({ maxConcurrentRequests })),
    stage('canonicalPath', canonicalPath()),
    stage('sanitizeHeaders', sanitizeHeaders({ stripHeaders, keepHeaders })),
    stage('clientAddress', clientAddress()),
  ]
  app.use(inOrder(hygiene, onError))
  if (authorizationServer !== undefined) app.route('/', authorizationServer.endpoints)
  /** Options of the readmission of a route. */
  const readmissionOptions = (route: PolicyRoute) => ({
    admission,
    relation: requiredRelation(route, checker),
    isLimited: route.limits.length > 0,
  })
  /**
   * Returns the guards of a route of the policy or of an operators' call. With `strict`, as for
   * operators' calls, a revocation is in force at once.
   */
  function guards(route: PolicyRoute, strict: boolean): MiddlewareHandler[] {
    const { permission, permissionMode: mode, limits, maxBodyBytes: maxBytes } = route
    const relation = requiredRelation(route, checker)
    const credentials = {
      verifier,
      references,
      proofs,
      dpop: route.dpop ? 'required' : 'accepted',
      sendNonces,
      anonymous: permission === undefined,
    } as const
    const lookAlikes = policy.routes.includes(route) ? lookAlikesOf(route, policy.routes) : []
    return [
      matched(route),
      lookAlikes.length > 0 && refuseLookAlikes({ lookAlikes }),
      stage('limitBody', limitBody({ maxBytes })),
      violations && stage('banOffenders', banOffenders({ violations, limits })),
      failures && stage('throttle', throttle({ failures, verifier, references })),
      stage('authenticate', authenticate(credentials)),
      stage('admit', admit({ admission, limits, strict, relation })),
      serverTiming({ authorizer }),
      permission !== undefined &&
        stage('authorize', authorize({ authorizer, permission, mode, relation })),
      route.inspect && stage('inspect', inspect({ ...route.inspect, authorizer })),
      stage('validate', validate(route.input)),
      !strict && stage('readmit', readmit(readmissionOptions(route))),
    ].filter((guard) => typeof guard === 'function')
  }

  for (const { route, handlers } of calls) {
    app.on(route.method, [route.path], inOrder(guards(route, true), onError), ...handlers)
  }
  // The policy cannot route the gateway's own paths, whatever its patterns are.
  app.all('/-/*', refuseUnknown(app.routes.slice()))
  const shared = coalescedOrigin({ origin })
  for (const route of policy.routes) {
    const target = route.coalesce
      ? { origin: shared, readmission: createReadmission(readmissionOptions(route)) }
      : { origin }
    const forward = stage('proxy', proxy({ ...route, ...target, assertions }))
    app.on(route.method, [route.path], inOrder([...guards(route, false), forward], onError))
  }
  app.all('*', refuseUnknown(app.routes))
  return app
}

/**
 * Refuses requests that no route matches: 405 with the methods of every route that has this path
 * (RFC 9110 section 10.2.1), otherwise 404.
 */
function refuseUnknown(routes: readonly RouterRoute[]): MiddlewareHandler {
  const paths = new TrieRouter<string>()
  for (const { method, path } of routes) {
    if (method !== METHOD_NAME_ALL) paths.add(METHOD_NAME_ALL, path, method)
  }
  return async function refuseUnknown(c) {
    const [matches] = paths.match(METHOD_NAME_ALL, c.req.path)
    const methods = new Set(matches.map(([method]) => method as string))
    if (methods.has('GET')) methods.add('HEAD')
    throw new Denied(
      methods.size === 0
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
    c.set('route', route)
    return next()
  }
}
