/** Revocations of operators: what `admit` reads, and the list that they are taken back from. */
import { v7 } from 'uuid'
import { cutOffKey, revokedTokenKey } from '../../admission/revocation.ts'
import { Unavailable } from '../../errors.ts'
import {
  type Revocation,
  type RevocationLog,
  revocationSchema,
} from '../../operators/revocation.ts'
import { tokenIdHash } from '../../tokens/token-id.ts'
import { API_KEY_ENDS_KEY } from './api-keys.ts'
import { hold, release } from './holds.ts'
import { createRecordList } from './record-list.ts'
import type { RedisRest } from './rest.ts'
import { ask } from './result.ts'

/** Unlike the 1 of a client that revoked its own token, so that the two can be told apart. */
const REVOKED_BY_OPERATOR = 2
/** For an API key that does not end: ten years, after which it has to be revoked again, or ended. */
const LONGEST_SECONDS = 315_360_000

/**
 * Makes the log. A cut-off outlives whatever it covers: the longest-lived API key as well, for a key
 * that was revoked must not come back to life when its revocation is forgotten.
 */
export function createRevocationLog(rest: RedisRest, now: () => number): RevocationLog {
  const list = createRecordList({
    rest,
    prefix: 'pc:revocation:',
    index: 'pc:revocations',
    schema: revocationSchema,
    now,
  })

  /** Seconds since the epoch until which any API key lives; infinite for one that does not end. */
  async function lastApiKeyEnd(): Promise<number> {
    const result = await ask(rest, ['ZREVRANGE', API_KEY_ENDS_KEY, 0, 0, 'WITHSCORES'])
    if (!Array.isArray(result)) throw new Unavailable('redis', 'malformed')
    if (result.length === 0) return 0
    const score = String(result[1])
    const end = /^\+?inf/i.test(score) ? Number.POSITIVE_INFINITY : Number(score)
    if (result.length !== 2 || Number.isNaN(end)) throw new Unavailable('redis', 'malformed')
    return end
  }

  return {
    find: (id) => list.find(id),
    list: (page) => list.list(page),

    async create({ kind, value, issuer, issuers, reason, createdBy, ttlSeconds }) {
      const nowSeconds = Math.floor(now() / 1000)
      const coversApiKeys = kind === 'token' || kind === 'subject' || kind === 'tenant'
      const end = Math.max(nowSeconds + ttlSeconds, coversApiKeys ? await lastApiKeyEnd() : 0)
      const revocation: Revocation = {
        id: v7(),
        kind,
        value,
        issuer: issuer ?? null,
        issuers: [...issuers],
        reason: reason ?? null,
        createdAtSeconds: nowSeconds,
        createdBy,
        expiresAtSeconds: Math.ceil(Math.min(end, nowSeconds + LONGEST_SECONDS)),
      }
      await hold(list, {
        record: list.keysOf(revocation.id),
        id: revocation.id,
        json: JSON.stringify(revocation),
        keys: await effectsOf(revocation),
        value: kind === 'token' ? REVOKED_BY_OPERATOR : nowSeconds,
        isCutOff: kind !== 'token',
        nowSeconds,
        endsAtSeconds: revocation.expiresAtSeconds,
      })
      return revocation
    },

    async remove(id) {
      const revocation = await list.find(id)
      if (revocation === undefined) return false
      const keys = await effectsOf(revocation)
      const nowSeconds = Math.floor(now() / 1000)
      return release(list, { record: list.keysOf(id), id, keys, nowSeconds })
    },
  }
}

/** The keys that `admit` finds a revocation at. */
async function effectsOf({ kind, value, issuers }: Revocation): Promise<string[]> {
  return Promise.all(
    issuers.map(async (issuer) =>
      kind === 'token'
        ? revokedTokenKey(await tokenIdHash(issuer, value))
        : cutOffKey(kind, issuer, value),
    ),
  )
}
