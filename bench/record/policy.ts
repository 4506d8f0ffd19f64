/** The policy of the recorded run, on both runtimes. */
import { authorizationServer } from '../../src/features/authorization-server/index.ts'
import { operators } from '../../src/features/operators/index.ts'
import { definePolicy } from '../../src/index.ts'
import { BOUND_MS, GRACE_MS, LIMITS, type LimitName, ROUTES, type RouteName } from './terms.ts'

const limitOf = (name: LimitName) => {
  const { limit, windowMs, lease } = LIMITS[name]
  return {
    ...({ limit, windowSeconds: windowMs / 1_000, by: 'subject', onUnavailable: 'deny' } as const),
    ...(lease !== undefined && { lease }),
  }
}

export const policy = definePolicy({
  features: [authorizationServer(), operators()],
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: { leased: limitOf('leased'), strict: limitOf('strict') },
  routes: (Object.keys(ROUTES) as RouteName[]).map((name) => ({
    method: 'GET',
    path: `/${name}`,
    permission: 'orders:read',
    limits: [...ROUTES[name]],
  })),
  tokens: {
    sessionSeconds: 3_600,
    refreshGraceSeconds: GRACE_MS / 1_000,
    exchangeLimits: { client: { limit: 1_000_000, windowSeconds: 60 } },
  },
  revocation: { maxStalenessMs: BOUND_MS },
})
