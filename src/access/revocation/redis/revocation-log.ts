/** Revocations by operators in Redis: the keys that `admit` reads, and the list of records. */
import { recordId } from '../../../isolate/random-ids.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { endsKey, type RedisKeys, recordKeys } from '../../../redis/keys.ts'
import { malformed, readList, sendCommand } from '../../../redis/reply.ts'
import { tokenIdHash } from '../../token-id.ts'
import {
  type Revocation,
  type RevocationLog,
  type RevocationOrder,
  revocationSchema,
} from '../record.ts'
import { MAX_ISSUED_AHEAD_SECONDS, revokedBeforeKey, revokedTokenKey } from '../revocation.ts'
import { createOwnerList, earliestSecond } from './shared-keys.ts'

/** Differs from the 1 that is stored when a client revokes its own token. */
const REVOKED_BY_OPERATOR = 2
/**
 * The longest life of a revocation, in seconds: ten years. It applies if an API key has no expiry.
 * The key must be revoked again, or ended, before then.
 */
const LONGEST_SECONDS = 315_360_000

/**
 * Creates the log. A revocation outlives everything that it covers, including the API key with the
 * longest life. Otherwise a revoked key would be valid again after its revocation expires.
 */
export function createRevocationLog(redis: RedisConnection, now: () => number): RevocationLog {
  const { revocationRecords, apiKeyRecords } = recordKeys(redis.keys)
  const list = createOwnerList({
    redis,
    ...revocationRecords,
    schema: revocationSchema,
    sharedKeysOf: (revocation) => keysReadBy(redis.keys, revocation),
    subjectOf: ({ kind, value }) => (kind === 'subject' ? value : undefined),
    now,
  })

  /** Returns the latest expiry of API keys in epoch seconds. Infinite: one has none. 0: no keys. */
  async function lastApiKeyEnd(): Promise<number> {
    const ends = endsKey(apiKeyRecords.index)
    const latest = readList(await sendCommand(redis, ['ZREVRANGE', ends, 0, 0, 'WITHSCORES']))
    if (latest.length === 0) return 0
    const score = String(latest[1])
    const end = /^\+?inf/i.test(score) ? Number.POSITIVE_INFINITY : Number(score)
    if (latest.length !== 2 || Number.isNaN(end)) throw malformed()
    return end
  }

  return {
    find: list.find,
    list: list.list,
    remove: list.remove,

    async revokedUntil(order) {
      const seconds = await earliestSecond(redis, await keysReadBy(redis.keys, order))
      // The value of a single token is a mark, and that within a tenant the end of the record.
      return seconds !== undefined && order.kind === 'token' ? null : seconds
    },

    async create(order) {
      const { kind, value, issuer, issuers, tenant, owner, reason, ttlSeconds } = order
      const { createdBy, createdByName } = order
      const nowSeconds = Math.floor(now() / 1000)
      const coversApiKeys = kind === 'token' || kind === 'subject' || kind === 'tenant'
      const end = Math.max(nowSeconds + ttlSeconds, coversApiKeys ? await lastApiKeyEnd() : 0)
      const revocation: Revocation = {
        id: recordId(),
        kind,
        value,
        issuer: issuer ?? null,
        issuers: [...issuers],
        ...(tenant !== undefined && { tenant }),
        ...(owner !== undefined && { owner }),
        reason: reason ?? null,
        createdAtSeconds: nowSeconds,
        createdBy,
        ...(createdByName !== undefined && { createdByName }),
        expiresAtSeconds: Math.ceil(Math.min(end, nowSeconds + LONGEST_SECONDS)),
      }
      // The cutoff of a single token covers every `iat`.
      if (kind === 'token' && isWithinTenant(revocation))
        await list.add(revocation, revocation.expiresAtSeconds)
      else if (kind === 'token') await list.add(revocation, REVOKED_BY_OPERATOR)
      // If a cutoff of the same second is in force, tokens issued since then have an `iat` of the
      // next second. The new cutoff must cover them too.
      else await list.add(revocation, nowSeconds, MAX_ISSUED_AHEAD_SECONDS)
      return revocation
    },
  }
}

/** Reports whether a revocation covers only what members of its tenant hold, not the tenant itself. */
const isWithinTenant = ({ kind, tenant }: Pick<RevocationOrder, 'kind' | 'tenant'>): boolean =>
  tenant !== undefined && kind !== 'tenant'

/** Returns the keys at which `admit` reads a revocation. */
async function keysReadBy(
  keys: RedisKeys,
  revocation: Pick<RevocationOrder, 'kind' | 'value' | 'issuers' | 'tenant'>,
): Promise<string[]> {
  const { kind, value, issuers, tenant } = revocation
  return Promise.all(
    issuers.map(async (issuer) => {
      if (isWithinTenant(revocation)) return revokedBeforeKey(keys, kind, issuer, value, tenant)
      return kind === 'token'
        ? revokedTokenKey(keys, await tokenIdHash(issuer, value))
        : revokedBeforeKey(keys, kind, issuer, value)
    }),
  )
}
