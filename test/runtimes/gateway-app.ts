/** The gateway that every runtime serves: its policy, and where each platform states the client's address. */
import type { Context } from 'hono'
import * as z from 'zod'
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
  type Runtime,
  WORKERS,
} from '../../src/index.ts'

const policy = definePolicy({
  roles: { reader: ['notes:read'], writer: ['notes:*'] },
  limits: {
    few: { limit: 1, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
    once: { limit: 1, windowSeconds: 3_600, by: 'address', onUnavailable: 'deny' },
  },
  routes: [
    { method: 'GET', path: '/open', anonymous: true, limits: ['once'] },
    { method: 'GET', path: '/notes', permission: 'notes:read' },
    { method: 'GET', path: '/few', permission: 'notes:read', limits: ['few'] },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      input: { body: z.strictObject({ text: z.string() }) },
    },
  ],
})

/** What a server or an adapter passes beside the request. */
interface Passed {
  readonly requestIP?: (request: Request) => { readonly address: string }
  readonly remoteAddr?: { readonly hostname: string }
  readonly requestContext?: { readonly http: { readonly sourceIp: string } }
  readonly context?: { readonly ip: string }
  readonly event?: { readonly Records: readonly [{ cf: { request: { clientIp: string } } }] }
}

function addressOf(c: Context): string | undefined {
  const { requestIP, remoteAddr, requestContext, context, event } = (c.env ?? {}) as Passed
  return (
    requestIP?.call(c.env, c.req.raw).address ??
    remoteAddr?.hostname ??
    requestContext?.http.sourceIp ??
    context?.ip ??
    event?.Records[0].cf.request.clientIp ??
    // Vercel overwrites it.
    (process.env.VERCEL === '1' ? c.req.header('X-Real-IP') : undefined)
  )
}

const runtime: Runtime = { ...WORKERS, addressOf, writeEvent() {} }

/** A gateway without sockets refuses `REDIS_URL`, which guards of the same process use. */
function environment(): GatewayEnv {
  const { REDIS_URL: _, ...variables } = process.env
  return variables as unknown as GatewayEnv
}

/** Returns a gateway that is composed with its first request, as on platforms that set variables late. */
export function createApp() {
  let gateway: ReturnType<typeof createGateway> | undefined
  return {
    fetch(request: Request, passed?: object): Response | Promise<Response> {
      gateway ??= createGateway(composeServices(environment(), policy, runtime), policy)
      return gateway.fetch(request, passed)
    },
  }
}

export const app = createApp()
