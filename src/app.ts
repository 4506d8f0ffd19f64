/** The gateway: one pipeline, read top to bottom. */
import { Hono, type MiddlewareHandler } from 'hono'
import { createAuthorizer } from './authorization/permissions.ts'
import type { GatewayVariables } from './context.ts'
import { Denied } from './errors.ts'
import { admit } from './middleware/admit.ts'
import { audit } from './middleware/audit.ts'
import { authenticate } from './middleware/authenticate.ts'
import { authorize } from './middleware/authorize.ts'
import { canonicalPath } from './middleware/canonical-path.ts'
import { clientAddress } from './middleware/client-address.ts'
import { limitBody } from './middleware/limit-body.ts'
import { lingerOnRefusal } from './middleware/linger-on-refusal.ts'
import { requestId } from './middleware/request-id.ts'
import { sanitizeHeaders } from './middleware/sanitize-headers.ts'
import { stage } from './middleware/stage.ts'
import { validate } from './middleware/validate.ts'
import type { Policy, PolicyRoute } from './policy.ts'
import { problemHandler } from './problem.ts'
import { healthRoutes } from './routes/health.ts'
import { proxy } from './routes/proxy.ts'
import { wellKnownRoutes } from './routes/well-known.ts'
import type { Services } from './services.ts'

export type Gateway = Hono<{ Variables: GatewayVariables }>

/**
 * Builds the gateway out of its services and a checked policy. Requests that no route of the policy
 * names end as 404 or 405 and never reach an origin; HEAD follows GET.
 */
export function createGateway(services: Services, policy: Policy): Gateway {
  const { verifier, admission, auditSink, origin, assertions } = services
  const authorizer = createAuthorizer(policy.roles)
  const app: Gateway = new Hono()
  app.onError(problemHandler({ publicUrl: services.publicUrl }))

  app.use(requestId(), lingerOnRefusal())
  app.route('/-', healthRoutes(services))
  app.route('/.well-known', wellKnownRoutes(services))

  app.use(
    audit({ sink: auditSink }),
    stage('canonicalPath', canonicalPath()),
    stage('sanitizeHeaders', sanitizeHeaders()),
    stage('clientAddress', clientAddress()),
  )
  for (const route of policy.routes) {
    const { permission, limits, maxBodyBytes: maxBytes } = route
    app.on(
      route.method,
      route.path,
      matched(route),
      stage('limitBody', limitBody({ maxBytes })),
      stage('authenticate', authenticate({ verifier, anonymous: permission === undefined })),
      stage('admit', admit({ admission, limits })),
      ...(permission === undefined
        ? []
        : [stage('authorize', authorize({ authorizer, permission }))]),
      stage('validate', validate(route.input)),
      stage('proxy', proxy({ origin, ...(assertions && { assertions }) })),
    )
  }
  for (const [path, allow] of allowedMethods(policy.routes)) {
    app.all(path, () => {
      throw new Denied({ code: 'method_unknown', allow })
    })
  }
  app.all('*', () => {
    throw new Denied({ code: 'route_unknown' })
  })
  return app
}

/** Tells the stages after it which row of the table this is. */
function matched(route: PolicyRoute): MiddlewareHandler<{ Variables: GatewayVariables }> {
  return async function matchedRoute(c, next) {
    c.set('route', route)
    await next()
  }
}

/** Methods of each path of the table, as `Allow` tells them (RFC 9110 section 10.2.1). */
function allowedMethods(routes: readonly PolicyRoute[]): Map<string, string[]> {
  const methods = new Map<string, string[]>()
  for (const { path, method } of routes) {
    const allow = methods.get(path) ?? []
    allow.push(...(method === 'GET' ? ['GET', 'HEAD'] : [method]))
    methods.set(path, allow)
  }
  return methods
}
