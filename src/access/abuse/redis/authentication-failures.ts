/** Counts failed authentications of addresses in Upstash Redis. */

import type { RedisConnection } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { malformed, readCount, readInteger, readList } from '../../../redis/reply.ts'
import { createScript, runScript } from '../../../redis/script.ts'
import { COUNT_FAILURES_SCRIPT } from '../../../redis/scripts.generated.ts'
import type { FailureCounter } from '../authentication-failures.ts'

/** Creates the adapter over Upstash: one call for each failure. */
export function createFailureCounter(redis: RedisConnection): FailureCounter {
  const script = createScript(COUNT_FAILURES_SCRIPT)
  return {
    async count(address, windowSeconds, signer) {
      const parts = signer === undefined ? [address] : [address, signer.issuer, signer.subject]
      const key =
        redis.keys.authenticationFailures + (await Promise.all(parts.map(keyPart))).join(':')
      const [counted, ttl] = readList(await runScript(redis, script, [key], [windowSeconds]))
      const count = readCount(counted)
      if (count === 0) throw malformed()
      return { count, resetSeconds: Math.max(1, readInteger(ttl)) }
    },
  }
}
