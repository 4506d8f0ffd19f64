/** Writes the revoked tokens and revocation cutoffs that `admit` reads. */

import type { RedisConnection } from '../../../redis/connection.ts'
import { malformed } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { type Revocations, revokedBeforeKey, revokedTokenKey } from '../revocation.ts'
import {
  LIFT_REVOKED_BEFORE_SCRIPT,
  REVOKE_BEFORE_SCRIPT,
  REVOKE_TOKEN_SCRIPT,
} from './scripts.generated.ts'

/** Creates the writer. `now` returns milliseconds since the epoch. */
export function createRevocations(redis: RedisConnection, now: () => number): Revocations {
  async function write(script: string, key: string, ...args: readonly number[]): Promise<void> {
    const done = await runText(redis, script, [redis.keys.feed, key], args)
    if (done !== 1) throw malformed()
  }
  return {
    async revokeToken({ tokenIdHash, untilSeconds }) {
      // At least one second, because Redis refuses a life of 0.
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      await write(REVOKE_TOKEN_SCRIPT, revokedTokenKey(redis.keys, tokenIdHash), ttlSeconds)
    },
    async revokeBefore({ kind, issuer, value, atSeconds, ttlSeconds }) {
      const key = await revokedBeforeKey(redis.keys, kind, issuer, value)
      await write(REVOKE_BEFORE_SCRIPT, key, Math.floor(atSeconds), Math.ceil(ttlSeconds))
    },
    async liftRevokedBefore({ kind, issuer, value }) {
      await write(
        LIFT_REVOKED_BEFORE_SCRIPT,
        await revokedBeforeKey(redis.keys, kind, issuer, value),
      )
    },
  }
}
