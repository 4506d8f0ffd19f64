/** Bans in Redis: the keys that `admit` reads, and the list of records. */
import { recordId } from '../../../isolate/random-ids.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import type { RedisKeys } from '../../../redis/keys.ts'
import { createOwnerList, earliestSecond } from '../../revocation/redis/shared-keys.ts'
import { addressBanKey, subjectBanKey } from '../ban.ts'
import { type Ban, type BanList, type BanOrder, banSchema } from '../ban-record.ts'

/** Creates the list. Of several bans of one value, responses report the one that ends last. */
export function createBanList(redis: RedisConnection, now: () => number): BanList {
  const list = createOwnerList({
    redis,
    ...redis.keys.banRecords,
    schema: banSchema,
    sharedKeysOf: (ban) => deriveBanKeys(redis.keys, ban),
    subjectOf: ({ kind, value }) => (kind === 'subject' ? value : undefined),
    now,
  })
  return {
    find: list.find,
    list: list.list,
    remove: list.remove,

    async bannedUntil(order) {
      const all = { ...order, mode: 'enforce', refuses: 'everything' } as const
      const seconds = await earliestSecond(redis, await deriveBanKeys(redis.keys, all))
      return seconds !== undefined && seconds * 1_000 > now() ? seconds : undefined
    },

    async create(order) {
      const { kind, value, issuer, issuers, tenant, owner, seconds, reason } = order
      const { createdBy, createdByName } = order
      const nowSeconds = Math.floor(now() / 1000)
      const ban: Ban = {
        id: recordId(),
        kind,
        value,
        issuer: issuer ?? null,
        issuers: kind === 'subject' ? [...issuers] : [],
        ...(tenant !== undefined && { tenant }),
        ...(owner !== undefined && { owner }),
        mode: 'enforce',
        refuses: 'everything',
        reason: reason ?? null,
        createdAtSeconds: nowSeconds,
        createdBy,
        ...(createdByName !== undefined && { createdByName }),
        expiresAtSeconds: nowSeconds + seconds,
      }
      await list.add(ban, ban.expiresAtSeconds)
      return ban
    },
  }
}

/** Returns the keys at which `admit` reads a ban. */
export async function deriveBanKeys(
  keys: RedisKeys,
  {
    kind,
    value,
    issuers,
    tenant,
    mode,
    refuses,
  }: Pick<Ban, 'kind' | 'value' | 'tenant' | 'mode' | 'refuses'> & Pick<BanOrder, 'issuers'>,
): Promise<string[]> {
  if (kind === 'address') return [await addressBanKey(keys, value, mode, refuses)]
  return Promise.all(issuers.map((issuer) => subjectBanKey(keys, issuer, value, mode, tenant)))
}
