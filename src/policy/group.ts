/** Groups of routes that share settings. */
import type { InputSchemas, RouteDefinition } from './definition.ts'

/** Settings of all routes of a group: any optional field of a route. */
export interface GroupDefaults<
  LimitName extends string = string,
  OriginName extends string = string,
> extends Omit<RouteDefinition<LimitName, OriginName>, 'method' | 'path'> {
  /** Limits of all routes, before those of each route. Default none. */
  readonly limits?: readonly LimitName[]
  /** Schemas of the input of each route that has none of its own. Default: not checked. */
  readonly input?: InputSchemas
  /** Beginning of every path: `/v1`. Default none. */
  readonly prefix?: string
}

/**
 * Returns the routes with the settings of the group, to spread into `routes` or into another group.
 * A field of a route replaces the field of the group, except `limits`: those of the group come
 * first, and those of the route are added. A route with `permission` or `anonymous` has neither of the group,
 * and a route with `rewrite` or `stripPrefix` neither of those.
 *
 * @example
 * ```ts
 * routes: [
 *   ...group({ host: 'api.example.com', prefix: '/v1', origin: 'orders', limits: ['standard'] }, [
 *     { method: 'GET', path: '/orders/:id', permission: 'orders:read' },
 *   ]),
 * ]
 * ```
 */
export function group<
  const LimitName extends string = never,
  const OriginName extends string = never,
>(
  defaults: GroupDefaults<LimitName, OriginName>,
  routes: readonly RouteDefinition<LimitName, OriginName>[],
): RouteDefinition<LimitName, OriginName>[] {
  const { prefix = '', limits = [], ...shared } = defaults
  return routes.map((route) => {
    const own = new Set(Object.keys(route))
    const kept = Object.entries(shared).filter(
      ([field]) =>
        !ALTERNATIVES.some((all) => all.includes(field) && all.some((one) => own.has(one))),
    )
    const all = [...new Set([...limits, ...(route.limits ?? [])])]
    return {
      ...Object.fromEntries(kept),
      ...route,
      path: route.path === '/' && prefix !== '' ? prefix : prefix + route.path,
      ...(all.length > 0 && { limits: all }),
    }
  })
}

/** Fields of which a route can have one. */
const ALTERNATIVES: readonly (readonly string[])[] = [
  ['permission', 'anonymous'],
  ['stripPrefix', 'rewrite'],
]
