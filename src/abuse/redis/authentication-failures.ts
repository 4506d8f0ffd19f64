/** Counts failed authentications of addresses in Upstash Redis. */

import { Unavailable } from '../../errors.ts'
import { authenticationFailuresKey } from '../../redis/keys.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { createScript, runScript } from '../../redis/script.ts'
import { COUNT_FAILURES_SCRIPT } from '../../redis/scripts.generated.ts'
import type { FailureCounter } from '../authentication-failures.ts'

/**
 * Creates the adapter over Upstash: one call for each failure. Throws `Unavailable` for a malformed
 * reply.
 */
export function createFailureCounter(rest: RedisRest): FailureCounter {
  const script = createScript(COUNT_FAILURES_SCRIPT)
  return {
    async count(address, windowSeconds) {
      const key = await authenticationFailuresKey(address)
      const reply = await runScript(rest, script, [key], [windowSeconds])
      const [count, ttl] = Array.isArray(reply) ? reply : []
      if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(ttl))
        throw new Unavailable('redis', 'malformed')
      return { count, resetSeconds: Math.max(1, ttl) }
    },
  }
}
