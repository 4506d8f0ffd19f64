/** The client's address, as the platform reports it. */
import type { Context } from 'hono'
import { IS_WORKERS } from '../isolate/platform.ts'
import { connectingAddress } from '../middleware/client-address.ts'
import { receivedHeaders } from '../middleware/request-headers.ts'

/**
 * Returns the address that no client can choose. Undefined if the platform reports none.
 *
 * It is a value that the server or the adapter passes beside the request. A header counts only where the
 * platform is known to write it: `CF-Connecting-IP` in a Worker, `X-Real-IP` on Vercel, and the last entry of
 * `X-Forwarded-For` behind an Application Load Balancer.
 */
export function platformAddress(c: Context, env: unknown = c.env): string | undefined {
  if (IS_WORKERS) return connectingAddress(c)
  const address = isVercel()
    ? receivedHeaders(c).get('x-real-ip')
    : (addressOfServer(env, c.req.raw) ?? addressOfFunction(env, c))
  return typeof address === 'string' ? address : undefined
}

/** Node (`@hono/node-server`), Bun (the server, or `{ server }`) and Deno (the information of the connection). */
function addressOfServer(env: unknown, request: Request): unknown {
  return (
    member(env, 'incoming', 'socket', 'remoteAddress') ??
    addressInBun(env, request) ??
    addressInBun(member(env, 'server'), request) ??
    member(env, 'remoteAddr', 'hostname')
  )
}

function addressInBun(server: unknown, request: Request): unknown {
  if (typeof member(server, 'requestIP') !== 'function') return undefined
  // A method of the server: it must be called on it.
  return (server as { requestIP(of: Request): { address: string } | null }).requestIP(request)
    ?.address
}

/** AWS Lambda, Lambda@Edge and Netlify. */
function addressOfFunction(env: unknown, c: Context): unknown {
  const context = member(env, 'requestContext')
  if (context !== undefined)
    return (
      member(context, 'identity', 'sourceIp') ??
      member(context, 'http', 'sourceIp') ??
      // The balancer appends the address of the connection to what the client sent.
      (member(context, 'elb') === undefined
        ? undefined
        : receivedHeaders(c).get('x-forwarded-for')?.split(',').at(-1)?.trim())
    )
  return (
    member(env, 'event', 'Records', '0', 'cf', 'request', 'clientIp') ??
    member(env, 'context', 'ip')
  )
}

interface Process {
  readonly env: { readonly VERCEL?: string; readonly VERCEL_REGION?: string }
}

const PROCESS = (globalThis as { process?: Process }).process

/**
 * Vercel overwrites `X-Real-IP`. Its connections come from its own proxy. Only its functions have a region:
 * a file that `vercel env pull` writes names none.
 */
const isVercel = (): boolean =>
  PROCESS?.env.VERCEL === '1' && (PROCESS.env.VERCEL_REGION ?? '') !== ''

function member(value: unknown, ...path: readonly string[]): unknown {
  let found = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Readonly<Record<string, unknown>>)[name]
  }
  return found ?? undefined
}
