/** The policy of the fuzz. Each fuzzed route has equal copies, so that a circuit breaker refuses few cases. */
import { quotas } from '../../src/features/plans/index.ts'
import { definePolicy } from '../../src/index.ts'
import { KINDS, ORIGIN_TIMEOUT_MS, ROUTES } from './plan.ts'

/** Slots that a killed isolate held are free after this time. */
const SLOT_SECONDS = 6
/** Above the number of connections of a run. */
export const MAX_IN_FLIGHT = 200

const SHARED = {
  anonymous: true,
  limits: ['slots'],
  maxBodyBytes: 2_097_152,
  originTimeoutMs: ORIGIN_TIMEOUT_MS,
} as const

/**
 * Creates the policy. `socketLimit` is that of WebSockets: workerd does not report the end of one of an anonymous
 * caller, so that its slot would be held until the platform ends the request.
 */
export const policyWith = (socketLimit: 'slots' | 'wide') =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {
      slots: quotas({ concurrency: 100_000, by: 'address', slotSeconds: SLOT_SECONDS }),
      wide: { limit: 1_000_000, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
    },
    maxConcurrentRequests: MAX_IN_FLIGHT,
    routes: [
      { ...SHARED, method: 'GET', path: '/control', originTimeoutMs: 20_000 },
      { ...SHARED, method: 'POST', path: '/control', originTimeoutMs: 20_000 },
      ...KINDS.flatMap((kind) =>
        Array.from({ length: ROUTES }, (_, route) => ({
          ...SHARED,
          method: kind === 'upload' || kind === 'chunked' ? ('POST' as const) : ('GET' as const),
          path: `/${kind}/${route}/:id`,
          limits: [kind === 'socket' ? socketLimit : ('slots' as const)],
          webSocketOrigins: ['https://app.test'],
        })),
      ),
    ],
  })
