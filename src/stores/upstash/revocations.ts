/** Writes what `admit` reads: revoked tokens and cut-offs. */
import { type CutOffKind, cutOffKey, revokedTokenKey } from '../../admission/revocation.ts'
import { Unavailable } from '../../errors.ts'
import type { RedisRest } from './rest.ts'
import { ask } from './result.ts'
import { FEED_KEY, FEED_TELL } from './revocation-feed.ts'

/** A token to revoke, as its verified claims name it. */
export interface RevokedToken {
  /** base64url SHA-256 of `JSON.stringify([iss, jti])`, see `tokenIdHash`. */
  readonly tokenIdHash: string
  /** `exp` plus the issuer's clock tolerance, seconds since the epoch. */
  readonly untilSeconds: number
}

/** Cuts off every token issued up to and including `atSeconds`. */
export interface CutOff {
  readonly kind: CutOffKind
  readonly issuer: string
  /** The session, subject, client or tenant. */
  readonly value: string
  readonly atSeconds: number
  /** How long it must be remembered: the longest life of a token, plus tolerance. */
  readonly ttlSeconds: number
}

export interface Revocations {
  /** Effective in every isolate from the next request on. Throws `Unavailable` if not stored. */
  revokeToken(token: RevokedToken): Promise<void>
  /** A later cut-off replaces an earlier one, never the other way round. */
  cutOff(cutOff: CutOff): Promise<void>
  /** Takes a cut-off back, from the next request on in every isolate. */
  liftCutOff(cutOff: Pick<CutOff, 'kind' | 'issuer' | 'value'>): Promise<void>
}

/** KEYS: feed, revocation. ARGV: for how long, in seconds. */
const REVOKE_SCRIPT = `${FEED_TELL}
feed_tell(KEYS[1], { KEYS[2] })
redis.call('SET', KEYS[2], '1', 'EX', ARGV[1])
return 1
`

/**
 * Keeps the later of two cut-offs and the longer of two lives; one step, so writers may race. KEYS:
 * feed, cut-off. ARGV: second, for how long.
 */
const CUT_OFF_SCRIPT = `${FEED_TELL}
feed_tell(KEYS[1], { KEYS[2] })
local stored = tonumber(redis.call('GET', KEYS[2]) or '0')
local at = math.max(stored, tonumber(ARGV[1]))
local ttl = math.max(redis.call('TTL', KEYS[2]), tonumber(ARGV[2]))
redis.call('SET', KEYS[2], string.format('%d', at), 'EX', ttl)
return 1
`

/** KEYS: feed, cut-off. In this order also a Redis that is full does it. */
const LIFT_SCRIPT = `${FEED_TELL}
redis.call('DEL', KEYS[2])
feed_tell(KEYS[1], { KEYS[2] })
return 1
`

/** Makes the writer. `now` is milliseconds since the epoch. */
export function createRevocations(rest: RedisRest, now: () => number): Revocations {
  /** Scripts are sent in full: they are rare, and so none of them is ever missing. */
  async function write(script: string, key: string, ...args: readonly number[]): Promise<void> {
    const done = await ask(rest, ['EVAL', script, 2, FEED_KEY, key, ...args])
    if (done !== 1) throw new Unavailable('redis', 'malformed')
  }
  return {
    async revokeToken({ tokenIdHash, untilSeconds }) {
      // At least a second, so that a token in its last moments is not kept for ever.
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      await write(REVOKE_SCRIPT, revokedTokenKey(tokenIdHash), ttlSeconds)
    },
    async cutOff({ kind, issuer, value, atSeconds, ttlSeconds }) {
      const key = await cutOffKey(kind, issuer, value)
      await write(CUT_OFF_SCRIPT, key, Math.floor(atSeconds), Math.ceil(ttlSeconds))
    },
    async liftCutOff({ kind, issuer, value }) {
      await write(LIFT_SCRIPT, await cutOffKey(kind, issuer, value))
    },
  }
}
