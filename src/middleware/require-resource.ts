/** Limits a token to the paths of the gateway that it was issued for (RFC 8707). */
import type { MiddlewareHandler } from 'hono'
import { narrowedTo } from '../access/tokens/narrowed.ts'
import { rejectedFor } from '../access/tokens/rejection.ts'
import { hostOf } from '../http/host.ts'
import { callerOf, type PrincipalVariables, type RouteVariables } from './context.ts'
import { createMiddleware } from './create-middleware.ts'

type Variables = PrincipalVariables & Partial<RouteVariables>

export interface RequireResourceOptions {
  /** The gateway's public URL. */
  readonly publicUrl: string
}

/**
 * Refuses a token of the gateway that is for other paths with `token_rejected` (401): a token for
 * `https://gateway.example.com/mcp` is valid at `/mcp` and below, and not at a route for another host.
 * A token that names no path is valid everywhere. Must run after `admit`, which identifies opaque
 * tokens.
 */
export function requireResource({
  publicUrl,
}: RequireResourceOptions): MiddlewareHandler<{ Variables: Variables }> {
  const ownHost = hostOf(publicUrl)
  return createMiddleware<{ Variables: Variables }>(function requireResource(c, next) {
    const caller = callerOf(c, 'requireResource')
    if (caller === null || caller.tokenIssuer !== publicUrl) return next()
    const paths = narrowedTo(caller.audiences, publicUrl)
    if (paths === undefined) return next()
    const { path } = c.req
    const isCovered = (resource: string) => path === resource || path.startsWith(`${resource}/`)
    const isHere = c.get('portcullis.route')?.host === undefined || hostOf(c.req.url) === ownHost
    if (!isHere || !paths.some(isCovered))
      throw rejectedFor('aud', caller.audiences, [publicUrl + path])
    return next()
  })
}
