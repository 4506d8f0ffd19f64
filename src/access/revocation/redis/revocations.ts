/** Writes the revoked tokens and revocation cutoffs that `admit` reads. */

import type { Fact, RedisConnection } from '../../../redis/connection.ts'
import { malformed } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import {
  LIFT_REVOKED_BEFORE_SCRIPT,
  REVOKE_BEFORE_SCRIPT,
  REVOKE_TOKEN_SCRIPT,
} from '../../../redis/scripts.generated.ts'
import {
  type Revocations,
  type RevokedBefore,
  revokedBeforeKey,
  revokedTokenKey,
} from '../revocation.ts'
import { writeFacts } from './facts.ts'

/** Creates the writer. `now` returns milliseconds since the epoch. */
export function createRevocations(redis: RedisConnection, now: () => number): Revocations {
  async function write(script: string, fact: Fact, ...args: readonly number[]): Promise<void> {
    const keys = [redis.keys.feed, fact.key]
    const done = await writeFacts(redis, [fact], now, (control) =>
      runText(control, script, keys, args),
    )
    if (done !== 1) throw malformed()
  }
  const cutoffOf = async ({
    kind,
    issuer,
    value,
  }: Pick<RevokedBefore, 'kind' | 'issuer' | 'value'>): Promise<Fact> => ({
    key: await revokedBeforeKey(redis.keys, kind, issuer, value),
    subject: kind === 'subject' ? value : undefined,
  })
  return {
    async revokeToken({ tokenIdHash, untilSeconds, subject }) {
      // At least one second, because Redis refuses a life of 0.
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      const fact = { key: revokedTokenKey(redis.keys, tokenIdHash), subject }
      await write(REVOKE_TOKEN_SCRIPT, fact, ttlSeconds)
    },
    async revokeBefore({ atSeconds, ttlSeconds, ...cutoff }) {
      const times = [Math.floor(atSeconds), Math.ceil(ttlSeconds)]
      await write(REVOKE_BEFORE_SCRIPT, await cutoffOf(cutoff), ...times)
    },
    async liftRevokedBefore(cutoff) {
      await write(LIFT_REVOKED_BEFORE_SCRIPT, await cutoffOf(cutoff))
    },
  }
}
