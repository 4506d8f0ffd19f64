/** Collects the declarations of the routes that match a request. */
import type { Context } from 'hono'
import { METHOD_NAME_ALL } from 'hono/router'
import type { RouterRoute } from 'hono/types'
import { findTargetHandler } from 'hono/utils/handler'
import type { Declaration, DeclarationOf } from '../guard/declaration.ts'
import type { Demand } from '../guard/guarded.ts'
import { shadows } from '../http/path-pattern.ts'

const EVERY_PATH = '/*'

/**
 * Returns the declarations of the routes behind the guard, up to the first route that has one for
 * its method: the handlers of that route answer the request.
 *
 * Anonymous callers are admitted only if all these declarations are public, and no other route comes
 * before the first of them. Handlers of `app.use` for the same paths are not such a route.
 */
export function combineDemand(c: Context, declarationOf: DeclarationOf): Demand {
  const routes = c.req.matchedRoutes
  const declarations: Declaration[] = []
  const before: RouterRoute[] = []
  let isClosed = false
  let own: RouterRoute | undefined
  for (const route of routes.slice(c.req.routeIndex + 1)) {
    if (own !== undefined && (route.method !== own.method || route.path !== own.path)) break
    const declaration = declarationOf(findTargetHandler(route.handler))
    if (declaration === undefined) {
      if (declarations.length === 0) before.push(route)
      continue
    }
    if (declarations.length === 0) isClosed = before.some((one) => !surrounds(one, route))
    declarations.push(declaration)
    if (route.method !== METHOD_NAME_ALL) own = route
  }
  const open = declarations.length > 0 && declarations.every(({ anonymous }) => anonymous)
  const path = own?.path ?? pathOf(routes.slice(c.req.routeIndex + 1))
  return { declarations, path, anonymous: open && !isClosed }
}

/** Reports whether it may be a middleware around the route, instead of another route. */
export function surrounds(one: RouterRoute, route: RouterRoute): boolean {
  if (one.method === route.method && one.path === route.path) return true
  return one.method === METHOD_NAME_ALL && shadows(one.path, route.path)
}

function pathOf(routes: readonly RouterRoute[]): string | null {
  const last = routes.findLast(
    ({ method, path }) => method !== METHOD_NAME_ALL || path !== EVERY_PATH,
  )
  return last?.path ?? null
}
