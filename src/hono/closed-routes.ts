/** Keeps anonymous callers of a public route out of the undeclared routes behind it. */
import type { Context } from 'hono'
import { METHOD_NAME_ALL } from 'hono/router'
import type { RouterRoute } from 'hono/types'
import { findTargetHandler } from 'hono/utils/handler'
import { Denied } from '../errors.ts'
import type { DeclarationOf } from '../guard/declaration.ts'
import { surrounds } from './demand.ts'

/** The handlers of one route, in their order. */
interface Group {
  readonly route: RouterRoute
  readonly indexes: number[]
  isDeclared: boolean
  isPublic: boolean
  /** Whether the last handler is a declaration: then it is made for the whole path. */
  endsDeclared: boolean
}

/**
 * Refuses (`missing_token`) an anonymous request that a handler passes on to a route without
 * `guard.public()`. Comes before the first handler behind the guard. Open stay:
 *
 * - every handler up to the end of the first public route, which the demand of the request covers
 * - the handlers of other public routes, and `app.use` around them
 * - all that follows `app.use('/docs/*', guard.public())`, which declares the whole path
 */
export function closeUndeclared(c: Context, declarationOf: DeclarationOf): void {
  const closed = closedRoutes(c, declarationOf)
  if (closed.size === 0) return
  let index = c.req.routeIndex
  // Hono sets the index directly before each handler, however the handler is reached.
  Object.defineProperty(c.req, 'routeIndex', {
    configurable: true,
    enumerable: true,
    get: () => index,
    set(next: number) {
      if (closed.has(next)) throw new Denied({ code: 'missing_token' })
      index = next
    },
  })
}

function closedRoutes(c: Context, declarationOf: DeclarationOf): ReadonlySet<number> {
  const groups = groupRoutes(c, declarationOf)
  const closed = new Set<number>()
  const first = groups.findIndex(({ isDeclared }) => isDeclared)
  for (const [at, group] of groups.entries()) {
    if (at < first) continue
    const isWhole = group.route.method === METHOD_NAME_ALL && group.endsDeclared
    if (group.isPublic && isWhole) break
    if (group.isPublic) continue
    const later = groups.slice(at + 1).filter(({ isPublic }) => isPublic)
    const isAround = !group.isDeclared && later.some(({ route }) => surrounds(group.route, route))
    if (!isAround) for (const index of group.indexes) closed.add(index)
  }
  return closed
}

function groupRoutes(c: Context, declarationOf: DeclarationOf): readonly Group[] {
  const groups: Group[] = []
  for (const [index, route] of c.req.matchedRoutes.entries()) {
    if (index <= c.req.routeIndex) continue
    const declaration = declarationOf(findTargetHandler(route.handler))
    let group = groups.at(-1)
    if (group?.route.method !== route.method || group.route.path !== route.path) {
      group = { route, indexes: [], isDeclared: false, isPublic: false, endsDeclared: false }
      groups.push(group)
    }
    group.indexes.push(index)
    if (declaration !== undefined) {
      group.isPublic = declaration.anonymous && (group.isPublic || !group.isDeclared)
      group.isDeclared = true
    }
    group.endsDeclared = declaration !== undefined
  }
  return groups
}
