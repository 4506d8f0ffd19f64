/** Selects the routes of a request by its host: one router for each host pattern. */
import type { Hono } from 'hono'
import { coversHost, hostOf, wildcardOf } from '../../http/host.ts'
import type { GatewayVariables } from '../../middleware/context.ts'
import type { PolicyRoute } from '../../policy/policy.ts'

type App = Hono<{ Variables: GatewayVariables }>

/**
 * Returns an app for all hosts. A request gets the app of its host, else the app of the pattern with a
 * wildcard that matches it, else the app of the routes without a host. The app of a host also has the
 * routes of patterns that match this host, in the order of the policy.
 *
 * The host is that of the request's URL. `canonicalPath` refuses a request whose `Host` is ambiguous.
 */
export function routesByHost(
  routes: readonly PolicyRoute[],
  appOf: (routes: readonly PolicyRoute[]) => App,
): App {
  const others = appOf(routes.filter(({ host }) => host === undefined))
  const apps = new Map<string, App>()
  for (const { host } of routes) {
    if (host === undefined || apps.has(host)) continue
    apps.set(host, appOf(routes.filter((route) => coversHost(route.host, host))))
  }
  if (apps.size === 0) return others
  const fetchOfOthers = others.fetch
  others.fetch = (request, ...rest) => {
    const host = hostOf(request.url)
    const app = apps.get(host) ?? apps.get(wildcardOf(host))
    return app === undefined ? fetchOfOthers(request, ...rest) : app.fetch(request, ...rest)
  }
  return others
}
