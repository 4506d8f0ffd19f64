/** Failed authentications of addresses, counted in Upstash Redis. */
import type { FailureCounter } from '../../admission/authentication-failures.ts'
import { keyPart } from '../../admission/key.ts'
import { Unavailable } from '../../errors.ts'
import type { RedisRest } from './rest.ts'
import { createScript } from './script.ts'

/** KEYS: the counter. ARGV: its window in seconds. A counter without an end would never let go. */
const COUNT_SCRIPT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 or redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('TTL', KEYS[1]) }
`

/** The adapter over Upstash: one call a failure. Throws `Unavailable` for every odd reply. */
export function createFailureCounter(rest: RedisRest): FailureCounter {
  const script = createScript(COUNT_SCRIPT)
  return {
    async count(address, windowSeconds) {
      const key = `pc:authentication-failures:${await keyPart(address)}`
      const reply = await script(rest, [key], [windowSeconds])
      const [count, ttl] = Array.isArray(reply) ? reply : []
      if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(ttl))
        throw new Unavailable('redis', 'malformed')
      return { count, resetSeconds: Math.max(1, ttl) }
    },
  }
}
