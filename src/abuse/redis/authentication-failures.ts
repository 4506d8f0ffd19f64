/** Counts failed authentications of addresses in Upstash Redis. */

import { Unavailable } from '../../errors.ts'
import { keyPart } from '../../redis/key-part.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { createScript, runScript } from '../../redis/script.ts'
import type { FailureCounter } from '../authentication-failures.ts'

/**
 * KEYS: the counter. ARGV: its window in seconds. A counter without a TTL gets one, because it
 * would otherwise never expire.
 */
const COUNT_SCRIPT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 or redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('TTL', KEYS[1]) }
`

/**
 * Creates the adapter over Upstash: one call for each failure. Throws `Unavailable` for a malformed
 * reply.
 */
export function createFailureCounter(rest: RedisRest): FailureCounter {
  const script = createScript(COUNT_SCRIPT)
  return {
    async count(address, windowSeconds) {
      const key = `pc:authentication-failures:${await keyPart(address)}`
      const reply = await runScript(rest, script, [key], [windowSeconds])
      const [count, ttl] = Array.isArray(reply) ? reply : []
      if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(ttl))
        throw new Unavailable('redis', 'malformed')
      return { count, resetSeconds: Math.max(1, ttl) }
    },
  }
}
