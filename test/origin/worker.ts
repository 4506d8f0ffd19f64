/**
 * A Worker that mounts the stages around the proxy without authentication. Two test headers name
 * the caller and the options of the route.
 */
import { Hono, type MiddlewareHandler } from 'hono'
import type { Principal } from '../../src/access/principal.ts'
import { Denied, Unavailable } from '../../src/errors.ts'
import type { Runtime } from '../../src/gateway/runtime.ts'
import { canonicalPath } from '../../src/middleware/canonical-path.ts'
import { clientAddress } from '../../src/middleware/client-address.ts'
import { type GatewayVariables, routeOf } from '../../src/middleware/context.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { requestId } from '../../src/middleware/request-id.ts'
import { sanitizeHeaders } from '../../src/middleware/sanitize-headers.ts'
import type { PolicyRoute } from '../../src/policy/policy.ts'
import { proxy } from '../../src/routes/proxy.ts'
import { entry } from './entry.ts'

interface Env {
  readonly ORIGIN_URL: string
}

const ROUTE: PolicyRoute = {
  method: 'GET',
  path: '*',
  permission: undefined,
  limits: [],
  input: {},
  maxBodyBytes: 2_000_000_000,
  // A large body needs this time on a slow machine. Tests of the deadline set their own.
  originTimeoutMs: 120_000,
  forwardAuthorization: false,
  forwardCookies: false,
  webSocketOrigins: [],
  dpop: false,
  coalesce: false,
}

function build(env: Env, runtime: Runtime) {
  const origin = runtime.origin({ url: env.ORIGIN_URL })
  const app = new Hono<{ Bindings: Env; Variables: GatewayVariables }>()
  app.onError((error, c) => {
    if (error instanceof Denied) {
      const status = error.denial.code === 'payload_too_large' ? 413 : 400
      return c.json(error.denial, status)
    }
    if (error instanceof Unavailable)
      return c.json({ fault: error.fault }, error.fault === 'timeout' ? 504 : 502)
    return c.json({ defect: String(error) }, 500)
  })
  app.use(requestId(), canonicalPath(), sanitizeHeaders(), clientAddress())
  app.use(async (c, next) => {
    const route = { ...ROUTE, ...JSON.parse(c.req.header('Test-Route') ?? '{}') } as PolicyRoute
    c.set('portcullis.route', route)
    c.set(
      'portcullis.principal',
      JSON.parse(c.req.header('Test-Caller') ?? 'null') as Principal | null,
    )
    // The audit trail keeps the request, and all the work that it began, alive after the response.
    c.executionCtx.waitUntil(new Promise((resolve) => setTimeout(resolve, 60_000)))
    const limit: MiddlewareHandler = limitBody({ maxBytes: route.maxBodyBytes })
    return limit(c, next)
  })
  app.get('/read-here', (c) => c.text('read'))
  app.get('/globals', (c) => c.json({ Buffer: typeof Buffer, process: typeof process }))
  app.post('/read-here', async (c) => {
    const bytes = await new Response(c.get('portcullis.body') as ReadableStream).arrayBuffer()
    return c.text(String(bytes.byteLength))
  })
  const assertions = { sign: async ({ subject }: Principal) => `assertion-of-${subject}` }
  app.all('*', (c, next) => {
    const handler: MiddlewareHandler = proxy({ ...routeOf(c), origin, assertions })
    return handler(c, next)
  })
  return app
}

export default entry(build)
