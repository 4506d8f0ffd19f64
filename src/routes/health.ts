/** Liveness and readiness, for orchestrators and for people. */
import { Hono } from 'hono'
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
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Readiness is open to anyone, so its answer is kept this long: no amplifier. */
const READINESS_MEMORY_MS = 1_000
const RETRY_AFTER_SECONDS = 5

/**
 * `GET /healthz` is 200 while the Worker runs and touches nothing. `GET /readyz` is 200 when every
 * check passes and 503 with the names of those that do not; it never says why.
 */
export function healthRoutes({ checks, now }: HealthOptions): Hono {
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
      const body = { status: failed.length === 0 ? 'ready' : 'unready' }
      return failed.length === 0
        ? c.json({ ...body, checks: Object.fromEntries(states) }, 200, NO_STORE)
        : c.json({ ...body, checks: Object.fromEntries(states) }, 503, {
            ...NO_STORE,
            'Retry-After': String(RETRY_AFTER_SECONDS),
          })
    })
}

const NO_STORE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
