/** Liveness and readiness, for orchestrators and for people. */
import { Hono } from 'hono'
import type { Breaker, BreakerState } from '../breakers/breaker.ts'
import { waitUntilOf } from '../middleware/wait-until.ts'
import type { WaitUntil } from '../tokens/principal.ts'

/** One dependency that readiness asks after. */
export interface ReadinessCheck {
  readonly name: string
  /**
   * Resolves when the dependency answers; rejects, with anything, when it does not. `waitUntil` is
   * for work that it begins and does not wait for.
   */
  check(waitUntil: WaitUntil): Promise<unknown>
}

export interface HealthOptions {
  readonly checks: readonly ReadinessCheck[]
  /** What this isolate has found out so far. Default none. */
  readonly breakers?: { readonly list: readonly Breaker[] }
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Readiness is open to anyone, so its answer is kept this long: no amplifier. */
const READINESS_MEMORY_MS = 1_000
const RETRY_AFTER_SECONDS = 5

/**
 * `GET /healthz` is 200 while the Worker runs and touches nothing. `GET /readyz` is 200 when every
 * check passes and 503 with the names of those that do not; it never says why. Beside them it tells
 * the state of the breakers of this isolate by dependency, the worst where there are several; they
 * decide nothing here, and are not tried for it.
 */
export function healthRoutes({ checks, breakers, now }: HealthOptions): Hono {
  let known: { readonly failed: readonly string[]; readonly untilMs: number } | undefined

  async function failedChecks(waitUntil: WaitUntil): Promise<readonly string[]> {
    if (known !== undefined && now() < known.untilMs) return known.failed
    const results = await Promise.allSettled(checks.map((check) => check.check(waitUntil)))
    const failed = checks
      .filter((_, index) => results[index]?.status === 'rejected')
      .map(({ name }) => name)
    known = { failed, untilMs: now() + READINESS_MEMORY_MS }
    return failed
  }

  return new Hono()
    .get('/healthz', (c) => c.json({ status: 'ok' }, 200, NO_STORE))
    .get('/readyz', async (c) => {
      const failed = await failedChecks(waitUntilOf(c))
      const states = checks.map(({ name }) => [name, failed.includes(name) ? 'failed' : 'ok'])
      const body = {
        status: failed.length === 0 ? 'ready' : 'unready',
        checks: Object.fromEntries(states),
        breakers: statesOf(breakers?.list ?? []),
      }
      return failed.length === 0
        ? c.json(body, 200, NO_STORE)
        : c.json(body, 503, {
            ...NO_STORE,
            'Retry-After': String(RETRY_AFTER_SECONDS),
          })
    })
}

/** From good to bad. */
const STATES: readonly BreakerState[] = ['closed', 'half_open', 'open']

/** One state for each dependency; which route or key set it is of, is nobody's business. */
function statesOf(breakers: readonly Breaker[]): Partial<Record<Breaker['name'], BreakerState>> {
  const worst: Partial<Record<Breaker['name'], BreakerState>> = {}
  for (const { name, state } of breakers) {
    const [current, known] = [state(), worst[name] ?? 'closed']
    worst[name] = STATES.indexOf(current) > STATES.indexOf(known) ? current : known
  }
  return worst
}

const NO_STORE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
