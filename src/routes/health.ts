/** Liveness and readiness. */
import type { Hono } from 'hono'
import { NO_STORE } from '../http/response-headers.ts'
import { createApp } from '../http/router.ts'
import type { WaitUntil } from '../isolate/after-response.ts'
import type { Breaker, BreakerState } from '../isolate/circuit-breaker.ts'
import { createSharedReading } from '../isolate/shared-reading.ts'
import { withDeadline } from '../isolate/timers.ts'
import { waitUntilOf } from '../middleware/context.ts'
import { retryAfter } from '../problems/retry-after.ts'

/** A readiness check of one dependency. */
export interface ReadinessCheck {
  readonly name: string
  /** Whether a failure makes the gateway unready. Default true; else it is only shown. */
  readonly decides?: boolean
  /** Resolves if the dependency answers, else rejects. `waitUntil` is for background work. */
  check(waitUntil: WaitUntil): Promise<unknown>
}

export interface HealthOptions {
  readonly checks: readonly ReadinessCheck[]
  /** The circuit breakers of this isolate. Default none. */
  readonly breakers?: { readonly list: readonly Breaker[] }
  /** The SHA-256 of the policy's files. Default: `readyz` does not name it. */
  readonly policyDigest?: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Anyone may call `readyz`, outside load shedding: repeated calls must not cost more. */
const READINESS_MEMORY_MS = 1_000
/** A check that takes longer has failed. */
const CHECK_TIMEOUT_MS = 5_000
/** After this time, the request that runs the checks counts as dead. */
const LEASE_MS = CHECK_TIMEOUT_MS + 500
const RETRY_AFTER_SECONDS = 5

/**
 * Creates `GET /healthz` and `GET /readyz`. `healthz` is 200 while the Worker runs, and makes no
 * call. `readyz` is 200 if every check that decides passes, and 503 with the names of those that fail; it never
 * says why. An isolate runs the checks at most once a second and one run at a time, however many
 * requests call `readyz`. The states of breakers do not decide readiness. `readyz` names the policy,
 * so that a rollout can wait until every gateway uses it.
 */
export function healthRoutes({ checks, breakers, policyDigest, now }: HealthOptions): Hono {
  /** Returns the names of the checks that failed; never rejects. */
  async function run(waitUntil: WaitUntil): Promise<readonly string[]> {
    const results = await Promise.allSettled(
      checks.map(({ check }) => withDeadline(check(waitUntil), CHECK_TIMEOUT_MS)),
    )
    return checks
      .filter((_, index) => results[index]?.status === 'rejected')
      .map(({ name }) => name)
  }
  const failedChecks = createSharedReading({
    read: run,
    now,
    memoryMs: READINESS_MEMORY_MS,
    leaseMs: LEASE_MS,
  })

  return createApp()
    .get('/healthz', (c) => c.json({ status: 'ok' }, 200, NO_STORE))
    .get('/readyz', async (c) => {
      const failed = await failedChecks(waitUntilOf(c))
      const states = checks.map(({ name }) => [name, failed.includes(name) ? 'failed' : 'ok'])
      const isReady = !checks.some(
        ({ name, decides }) => decides !== false && failed.includes(name),
      )
      const body = {
        status: isReady ? 'ready' : 'unready',
        checks: Object.fromEntries(states),
        breakers: summarizeStates(breakers?.list ?? []),
        ...(policyDigest !== undefined && { policy: policyDigest }),
      }
      return isReady
        ? c.json(body, 200, NO_STORE)
        : c.json(body, 503, {
            ...NO_STORE,
            ...retryAfter({ retryAfterSeconds: RETRY_AFTER_SECONDS }),
          })
    })
}

/** From best to worst. */
const STATES: readonly BreakerState[] = ['closed', 'half_open', 'open']

/** Returns the worst state of each dependency: callers must not learn of which route it is. */
function summarizeStates(
  breakers: readonly Breaker[],
): Partial<Record<Breaker['name'], BreakerState>> {
  const worst: Partial<Record<Breaker['name'], BreakerState>> = {}
  for (const { name, state } of breakers) {
    const [current, known] = [state(), worst[name] ?? 'closed']
    worst[name] = STATES.indexOf(current) > STATES.indexOf(known) ? current : known
  }
  return worst
}
