/** The pipeline of `src/gateway/create-gateway.ts` up to a stage: the same middlewares in the same order. */
import { Hono, type MiddlewareHandler } from 'hono'
import type { Gateway, Policy, PolicyRoute, Services } from '../../src/index.ts'
import {
  admit,
  audit,
  authenticate,
  authorize,
  canonicalPath,
  clientAddress,
  type GatewayVariables,
  limitBody,
  problemHandler,
  proxy,
  requestId,
  sanitizeHeaders,
  validate,
} from '../../src/parts.ts'
import { includes, type Stage } from '../layers/layers.ts'

type Middleware = MiddlewareHandler<{ Variables: GatewayVariables }>

/** Creates a part of the gateway, without assertions and without routes of its own. */
export function createStages(stage: Stage, services: Services, policy: Policy): Gateway {
  const { verifier, references, proofs, admission, authorizer, auditSink, origin } = services
  const app: Gateway = new Hono()
  app.onError(problemHandler({ publicUrl: services.publicUrl }))
  app.use(requestId())
  if (includes(stage, 'audit')) app.use(audit({ sink: auditSink }))
  app.use(canonicalPath(), sanitizeHeaders(), clientAddress())
  for (const route of policy.routes) {
    const { permission, limits, maxBodyBytes: maxBytes } = route
    const stages: MiddlewareHandler[] = [
      matched(route) as MiddlewareHandler,
      limitBody({ maxBytes }),
      includes(stage, 'authenticate')
        ? authenticate({ verifier, references, proofs, anonymous: permission === undefined })
        : (anonymous as MiddlewareHandler),
    ]
    if (includes(stage, 'admit')) stages.push(admit({ admission, limits }))
    if (includes(stage, 'authorize') && permission !== undefined)
      stages.push(authorize({ authorizer, permission }))
    if (includes(stage, 'validate')) stages.push(validate(route.input))
    app.on([route.method], [route.path], ...stages, proxy({ ...route, origin }))
  }
  return app
}

function matched(route: PolicyRoute): Middleware {
  return async function matchedRoute(c, next) {
    c.set('portcullis.route', route)
    await next()
  }
}

/** Sets no principal, for layers without authentication. */
const anonymous: Middleware = async function anonymous(c, next) {
  c.set('portcullis.principal', null)
  await next()
}
