/**
 * A Worker with routes that coalesce, without authentication. Test headers, which no origin receives,
 * name the caller and how the request ends.
 */
import { Hono } from 'hono'
import type { Principal } from '../../src/access/principal.ts'
import { Denied, Unavailable } from '../../src/errors.ts'
import type { Runtime } from '../../src/gateway/runtime.ts'
import { canonicalPath } from '../../src/middleware/canonical-path.ts'
import { clientAddress } from '../../src/middleware/client-address.ts'
import type { GatewayVariables } from '../../src/middleware/context.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { requestId } from '../../src/middleware/request-id.ts'
import { sanitizeHeaders } from '../../src/middleware/sanitize-headers.ts'
import { type CoalescedOrigin, coalescedOrigin } from '../../src/origin/coalesced-origin.ts'
import { proxy } from '../../src/routes/proxy.ts'
import { entry } from './entry.ts'

interface Env {
  readonly ORIGIN_URL: string
  /** Deadline of the origin in milliseconds. */
  readonly TIMEOUT_MS: string
}

function build(env: Env, runtime: Runtime) {
  const shared = coalescedOrigin({ origin: runtime.origin({ url: env.ORIGIN_URL }) })
  let entered = 0
  const origin: CoalescedOrigin = {
    send(request, options) {
      entered += 1
      return shared.send(request, options)
    },
  }
  const app = new Hono<{ Bindings: Env; Variables: GatewayVariables }>()
  app.onError((error, c) => {
    if (error instanceof Denied) return c.json(error.denial, 400)
    if (error instanceof Unavailable) return c.json({ fault: error.fault }, 502)
    return c.json({ defect: String(error) }, 500)
  })
  // This answer also shows that the runtime is ready.
  app.get('/read-here', (c) => c.text(String(entered)))
  app.use(requestId(), canonicalPath(), sanitizeHeaders(), clientAddress())
  app.use(limitBody({ maxBytes: 1_000_000 }))
  app.use(async (c, next) => {
    c.set(
      'portcullis.principal',
      JSON.parse(c.req.header('X-User-Test') ?? 'null') as Principal | null,
    )
    // As the audit trail does. Without it, a request ends when its client leaves, and runs no more
    // code.
    if (c.req.header('X-User-Mortal') === undefined)
      c.executionCtx.waitUntil(new Promise((resolve) => setTimeout(resolve, 60_000)))
    await next()
  })
  const assertions = { sign: async () => `assertion-${crypto.randomUUID()}` }
  const originTimeoutMs = Number(env.TIMEOUT_MS)
  app.all('*', proxy({ origin, assertions, originTimeoutMs, coalesce: true, forwardCookies: true }))
  return app
}

export default entry(build)
