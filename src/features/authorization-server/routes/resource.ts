/** The metadata of the gateway and of its paths as protected resources (RFC 9728). */
import type { Hono, MiddlewareHandler } from 'hono'
import { pathOf } from '../../../access/tokens/narrowed.ts'
import { documentResponse } from '../../../http/entity-tag.ts'
import { shadows } from '../../../http/path-pattern.ts'
import { createApp } from '../../../http/router.ts'
import type { PolicyRoute } from '../../../policy/route.ts'
import { permissionsOfRoute } from '../../../policy/route-permissions.ts'
import {
  type ProtectedResource,
  requireProofs,
  resourceMetadata,
} from '../../../routes/well-known.ts'
import { routesAt } from '../target.ts'

const DOCUMENT = '/oauth-protected-resource'
const BASE = `/.well-known${DOCUMENT}`

export interface ResourceOptions extends ProtectedResource {
  readonly routes: readonly PolicyRoute[]
  /** Whether all tokens of the authorization server are bound to a key. */
  readonly bindsTokens: boolean
  /** Whether users can allow clients permissions. */
  readonly offersScopes: boolean
  /** Lets pages of every origin read the documents. Default: none may. */
  readonly forPages?: ((methods: string) => MiddlewareHandler) | undefined
}

/**
 * Creates the documents: of the gateway, and of each path that a client can name as a `resource`. An MCP
 * server has its own, and a route of the policy that is written for a document sends it to the origin.
 */
export function resourceRoutes(options: ResourceOptions): Hono {
  const { publicUrl, routes, bindsTokens, offersScopes, forPages } = options
  const findRoutes = routesAt(routes, publicUrl)
  const proxied = routes.map(({ path }) => path).filter((path) => path.startsWith(`${BASE}/`))

  function describe(url: string): object | undefined {
    // As it was sent: another spelling is another resource.
    const { pathname: asked } = new URL(url)
    const path = asked.slice(BASE.length)
    const resource = publicUrl + path
    const isPath = pathOf(resource, publicUrl) !== undefined
    const found = path === '' ? routes : isPath ? findRoutes(path) : []
    // An origin may have documents of its own: at other paths, or where a route is written for them.
    if (found.length === 0 || proxied.some((pattern) => shadows(pattern, asked))) return undefined
    if (found.some((route) => route.mcp && route.path === path)) return undefined
    const isOffered = offersScopes && path !== ''
    const scopes = isOffered ? [...new Set(found.flatMap(permissionsOfRoute))] : []
    const requiresProofs = bindsTokens || requireProofs(found)
    return resourceMetadata(options, resource, { scopes, requiresProofs })
  }

  const paths = [DOCUMENT, `${DOCUMENT}/*`]
  const share: MiddlewareHandler = forPages?.('GET') ?? ((_c, next) => next())
  return createApp().on(['GET', 'OPTIONS'], paths, async function describeResource(c, next) {
    const document = describe(c.req.url)
    if (document === undefined) return next()
    const respond = async () => {
      c.res = await documentResponse(c, JSON.stringify(document))
    }
    return share(c, c.req.method === 'OPTIONS' ? next : respond)
  })
}
