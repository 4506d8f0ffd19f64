/** Our gateway on Node: the shipped policy, changed as `VARIANT` and `COUNT` say, with the limit of `LIMIT`. */
import cluster from 'node:cluster'
import { join } from 'node:path'
import { boundHeap } from '../../cli/heap-flags.ts'
import { policyIn } from '../../dev/start/serve-node.ts'
import { ROOT } from '../../dev/start/settings.ts'
import { type Policy, serve } from '../../src/runtimes/node/index.ts'
import { roomy } from '../workers/policy.ts'
import { HOST, LIMIT } from './environment.ts'

const LISTED = '/orders'
const count = Number(process.env.COUNT)

/** How a variant changes the policy. Other variants only have other variables. */
const CHANGES: Readonly<Record<string, (policy: Policy) => Policy>> = {
  /** Adds routes like the list of orders, below other paths. */
  routes: (policy) => ({
    ...policy,
    routes: [
      ...policy.routes,
      ...policy.routes
        .filter(isList)
        .flatMap((route) =>
          Array.from({ length: count }, (_, at) => ({ ...route, path: `/area-${at}${LISTED}` })),
        ),
    ],
  }),
  /** Gives the list of orders so many limits. */
  limits: (policy) => ({
    ...policy,
    routes: policy.routes.map((route) =>
      isList(route)
        ? {
            ...route,
            limits: route.limits.flatMap((limit) =>
              Array.from({ length: count }, (_, at) => ({ ...limit, name: `${limit.name}-${at}` })),
            ),
          }
        : route,
    ),
  }),
  /** Adds a route whose responses do not end. */
  streams: (policy) => ({
    ...policy,
    routes: [
      ...policy.routes,
      ...policy.routes.filter(isList).map((route) => ({ ...route, path: '/streams' })),
    ],
  }),
}

function isList({ method, path }: Policy['routes'][number]): boolean {
  return method === 'GET' && path === LISTED
}

boundHeap()
if (cluster.isPrimary && process.env.PROCESSES !== undefined) {
  cluster.schedulingPolicy = cluster.SCHED_NONE
  for (let left = Number(process.env.PROCESSES); left > 0; left--) cluster.fork()
} else {
  const shipped = roomy(await policyIn(join(ROOT, 'portcullis.config.ts')), '', LIMIT)
  const change = CHANGES[process.env.VARIANT ?? ''] ?? ((policy: Policy) => policy)
  const { abuse } = shipped
  // Without a proxy, all requests come from this address.
  const policy = change({
    ...shipped,
    abuse: { ...abuse, exempt: [...abuse.exempt, `${HOST}/32`] },
  })
  await serve({ policy })
}
