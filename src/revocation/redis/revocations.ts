/** Writes the revoked tokens and revocation cutoffs that `admit` reads. */

import { Unavailable } from '../../errors.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { ask } from '../../redis/result.ts'
import { type RevokedBeforeKind, revokedBeforeKey, revokedTokenKey } from '../revocation.ts'
import { FEED_KEY, FEED_TELL } from './feed.ts'

/** A token to revoke, from its verified claims. */
export interface RevokedToken {
  /** base64url SHA-256 of `JSON.stringify([iss, jti])`, see `tokenIdHash`. */
  readonly tokenIdHash: string
  /** `exp` plus the issuer's clock tolerance, in seconds since the epoch. */
  readonly untilSeconds: number
}

/** A revocation cutoff: every token issued at or before `atSeconds` is revoked. */
export interface RevokedBefore {
  readonly kind: RevokedBeforeKind
  readonly issuer: string
  /** The session, subject, client or tenant. */
  readonly value: string
  readonly atSeconds: number
  /**
   * How long to keep the cutoff, in seconds: the longest life of a token, plus the clock tolerance.
   */
  readonly ttlSeconds: number
}

export interface Revocations {
  /**
   * Revokes a token in every isolate from the next request on. Throws `Unavailable` if the
   * revocation may not have been stored.
   */
  revokeToken(token: RevokedToken): Promise<void>
  /** Sets a cutoff. A later cutoff replaces an earlier one, never the other way round. */
  revokeBefore(revokeBefore: RevokedBefore): Promise<void>
  /** Removes a cutoff in every isolate from the next request on. */
  liftRevokedBefore(revokeBefore: Pick<RevokedBefore, 'kind' | 'issuer' | 'value'>): Promise<void>
}

/** KEYS: feed, revocation. ARGV: life of the revocation, in seconds. */
const REVOKE_SCRIPT = `${FEED_TELL}
feed_tell(KEYS[1], { KEYS[2] })
redis.call('SET', KEYS[2], '1', 'EX', ARGV[1])
return 1
`

/**
 * Keeps the later of two cutoffs and the longer of two lives. It is one step, so that concurrent
 * writers are safe. KEYS: feed, cutoff. ARGV: the cutoff's second, its life in seconds.
 */
const REVOKE_BEFORE_SCRIPT = `${FEED_TELL}
feed_tell(KEYS[1], { KEYS[2] })
local stored = tonumber(redis.call('GET', KEYS[2]) or '0')
local at = math.max(stored, tonumber(ARGV[1]))
local ttl = math.max(redis.call('TTL', KEYS[2]), tonumber(ARGV[2]))
redis.call('SET', KEYS[2], string.format('%d', at), 'EX', ttl)
return 1
`

/**
 * KEYS: feed, cutoff. The deletion is first, so that the script also succeeds when Redis is out of
 * memory.
 */
const LIFT_SCRIPT = `${FEED_TELL}
redis.call('DEL', KEYS[2])
feed_tell(KEYS[1], { KEYS[2] })
return 1
`

/** Creates the writer. `now` returns milliseconds since the epoch. */
export function createRevocations(rest: RedisRest, now: () => number): Revocations {
  /** Sends the script in full: such calls are rare, and Redis then never lacks the script. */
  async function write(script: string, key: string, ...args: readonly number[]): Promise<void> {
    const done = await ask(rest, ['EVAL', script, 2, FEED_KEY, key, ...args])
    if (done !== 1) throw new Unavailable('redis', 'malformed')
  }
  return {
    async revokeToken({ tokenIdHash, untilSeconds }) {
      // At least one second, because Redis refuses a life of 0.
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      await write(REVOKE_SCRIPT, revokedTokenKey(tokenIdHash), ttlSeconds)
    },
    async revokeBefore({ kind, issuer, value, atSeconds, ttlSeconds }) {
      const key = await revokedBeforeKey(kind, issuer, value)
      await write(REVOKE_BEFORE_SCRIPT, key, Math.floor(atSeconds), Math.ceil(ttlSeconds))
    },
    async liftRevokedBefore({ kind, issuer, value }) {
      await write(LIFT_SCRIPT, await revokedBeforeKey(kind, issuer, value))
    },
  }
}
