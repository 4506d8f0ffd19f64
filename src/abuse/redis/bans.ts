/**
 * Bans by operators and automatic bans in Redis: the keys that `admit` reads, and the list of
 * records.
 */
import { v7 } from 'uuid'
import { createRecordList } from '../../redis/record-list.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { hold, release } from '../../revocation/redis/holds.ts'
import { addressBanKey, subjectBanKey } from '../ban.ts'
import { type Ban, type BanList, banSchema } from '../ban-record.ts'

/**
 * The prefix of the records and the index of the list. The expiry of each ban is at `<index>:ends`.
 */
export const BAN_KEYS = { prefix: 'pc:ban-record:', index: 'pc:bans' } as const

/**
 * Creates the list. If several bans cover the same address or subject, responses report the one
 * that ends last.
 */
export function createBanList(rest: RedisRest, now: () => number): BanList {
  const list = createRecordList({
    rest,
    ...BAN_KEYS,
    schema: banSchema,
    now,
  })
  return {
    list: (page) => list.list(page),

    async create({ kind, value, issuer, issuers, seconds, reason, createdBy }) {
      const nowSeconds = Math.floor(now() / 1000)
      const ban: Ban = {
        id: v7(),
        kind,
        value,
        issuer: issuer ?? null,
        issuers: kind === 'subject' ? [...issuers] : [],
        mode: 'enforce',
        reason: reason ?? null,
        createdAtSeconds: nowSeconds,
        createdBy,
        expiresAtSeconds: nowSeconds + seconds,
      }
      await hold(list, {
        record: list.keysOf(ban.id),
        id: ban.id,
        json: JSON.stringify(ban),
        keys: await effectsOf(ban),
        value: ban.expiresAtSeconds,
        nowSeconds,
        endsAtSeconds: ban.expiresAtSeconds,
      })
      return ban
    },

    async remove(id) {
      const ban = await list.find(id)
      if (ban === undefined) return false
      const keys = await effectsOf(ban)
      const nowSeconds = Math.floor(now() / 1000)
      return release(list, { record: list.keysOf(id), id, keys, nowSeconds })
    },
  }
}

/** Returns the keys at which `admit` reads a ban. */
export async function effectsOf({
  kind,
  value,
  issuers,
  mode,
}: Pick<Ban, 'kind' | 'value' | 'issuers' | 'mode'>): Promise<string[]> {
  if (kind === 'address') return [await addressBanKey(value, mode)]
  return Promise.all(issuers.map((issuer) => subjectBanKey(issuer, value, mode)))
}
