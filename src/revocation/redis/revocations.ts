/** Writes the revoked tokens and revocation cutoffs that `admit` reads. */

import { Unavailable } from '../../errors.ts'
import { FEED_KEY } from '../../redis/keys.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { runText } from '../../redis/script.ts'
import { type RevokedBeforeKind, revokedBeforeKey, revokedTokenKey } from '../revocation.ts'
import {
  LIFT_REVOKED_BEFORE_SCRIPT,
  REVOKE_BEFORE_SCRIPT,
  REVOKE_TOKEN_SCRIPT,
} from './scripts.generated.ts'

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

/** Creates the writer. `now` returns milliseconds since the epoch. */
export function createRevocations(rest: RedisRest, now: () => number): Revocations {
  async function write(script: string, key: string, ...args: readonly number[]): Promise<void> {
    const done = await runText(rest, script, [FEED_KEY, key], args)
    if (done !== 1) throw new Unavailable('redis', 'malformed')
  }
  return {
    async revokeToken({ tokenIdHash, untilSeconds }) {
      // At least one second, because Redis refuses a life of 0.
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      await write(REVOKE_TOKEN_SCRIPT, revokedTokenKey(tokenIdHash), ttlSeconds)
    },
    async revokeBefore({ kind, issuer, value, atSeconds, ttlSeconds }) {
      const key = await revokedBeforeKey(kind, issuer, value)
      await write(REVOKE_BEFORE_SCRIPT, key, Math.floor(atSeconds), Math.ceil(ttlSeconds))
    },
    async liftRevokedBefore({ kind, issuer, value }) {
      await write(LIFT_REVOKED_BEFORE_SCRIPT, await revokedBeforeKey(kind, issuer, value))
    },
  }
}
