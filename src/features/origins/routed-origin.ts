/** Sends the requests of each route to its origin. */
import type { Principal } from '../../access/principal.ts'
import type { HeaderChanges, OriginRouting } from '../../origin/definition.ts'
import type { Origin } from '../../origin/origin.ts'
import { isInCanary } from './canary.ts'
import { routeTarget } from './route-target.ts'

/** An origin, and what is only for it. */
export interface Destination {
  readonly origin: Origin
  /** Undefined: the gateway has no signing keys. */
  readonly assertions: { sign(principal: Principal): Promise<string> } | undefined
  /** The destination of a share of the callers. */
  readonly canary?: { readonly name: string; readonly percent: number; readonly to: Destination }
}

type Routing = Pick<
  OriginRouting,
  'stripPrefix' | 'rewrite' | 'requestHeaders' | 'responseHeaders'
> & { readonly path: string }

export interface RoutedOriginOptions {
  /** By the `route` of the requests. */
  readonly routes: ReadonlyMap<string, { readonly to: Destination; readonly routing: Routing }>
}

/**
 * Creates an origin that sends each request to the destination of its `route`, with the path, the
 * headers and the assertion that are for this destination. A canary gets its own assertion.
 *
 * @example
 * ```ts
 * const to = { origin: createOrigin({ url: 'https://orders.internal.example' }), assertions }
 * const routing = { path: '/v1/orders', stripPrefix: '/v1' }
 * const origin = routedOrigin({ routes: new Map([['GET /v1/orders', { to, routing }]]) })
 * ```
 */
export function routedOrigin({ routes }: RoutedOriginOptions): Origin {
  const table = new Map(
    [...routes].map(([route, { to, routing }]) => [
      route,
      {
        to,
        target: routeTarget(routing),
        changeRequest: routing.requestHeaders && headerChange(routing.requestHeaders),
        changeResponse: routing.responseHeaders && headerChange(routing.responseHeaders),
      },
    ]),
  )
  return {
    async send(request) {
      const row = table.get(request.route ?? '')
      if (row === undefined) throw new Error(`no origin for the route ${request.route}`)
      const { canary } = row.to
      const isCanary = canary !== undefined && isInCanary(request, canary.name, canary.percent)
      const { origin, assertions } = isCanary ? canary.to : row.to
      const headers = new Map(request.headers)
      row.changeRequest?.(headers)
      if (assertions !== undefined && request.caller)
        headers.set('x-auth-assertion', await assertions.sign(request.caller))
      const target = row.target?.(request.incoming)
      const response = await origin.send({ ...request, headers, target })
      if (response.status !== 101) row.changeResponse?.(response.headers)
      return response
    },
  }
}

interface Fields {
  set(name: string, value: string): unknown
  delete(name: string): unknown
}

function headerChange({ set = {}, remove = [] }: HeaderChanges): (fields: Fields) => void {
  const values = Object.entries(set).map(([name, value]) => [name.toLowerCase(), value] as const)
  const names = remove.map((name) => name.toLowerCase())
  return function change(fields) {
    for (const name of names) fields.delete(name)
    for (const [name, value] of values) fields.set(name, value)
  }
}
