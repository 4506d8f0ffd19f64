/** The policy of the recorded run, on both runtimes. */
import { operators } from '../../src/features/operators/index.ts'
import { definePolicy } from '../../src/index.ts'
import { BOUND_MS, LIMITS, type LimitName, ROUTES, type RouteName } from './terms.ts'

const limitOf = (name: LimitName) => {
  const { limit, windowMs, lease } = LIMITS[name]
  return {
    ...({ limit, windowSeconds: windowMs / 1_000, by: 'subject', onUnavailable: 'deny' } as const),
    ...(lease !== undefined && { lease }),
  }
}

export const policy = definePolicy({
  features: [operators()],
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: { leased: limitOf('leased'), strict: limitOf('strict') },
  routes: (Object.keys(ROUTES) as RouteName[]).map((name) => ({
    method: 'GET',
    path: `/${name}`,
    permission: 'orders:read',
    limits: [...ROUTES[name]],
  })),
  revocation: { maxStalenessMs: BOUND_MS },
})
