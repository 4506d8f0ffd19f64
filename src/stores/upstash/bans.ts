/** Bans, of operators and by themselves: what `admit` reads, and the list that they are lifted from. */
import { v7 } from 'uuid'
import { addressBanKey, subjectBanKey } from '../../admission/ban.ts'
import { type Ban, type BanList, banSchema } from '../../operators/ban.ts'
import { hold, release } from './holds.ts'
import { createRecordList } from './record-list.ts'
import type { RedisRest } from './rest.ts'

/** Where the list is; what ends when is at `<index>:ends`. */
export const BAN_KEYS = { prefix: 'pc:ban-record:', index: 'pc:bans' } as const

/** Makes the list. Of several bans over the same, the one that ends last is told to the caller. */
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

/** The keys that `admit` finds a ban at. */
export async function effectsOf({
  kind,
  value,
  issuers,
  mode,
}: Pick<Ban, 'kind' | 'value' | 'issuers' | 'mode'>): Promise<string[]> {
  if (kind === 'address') return [await addressBanKey(value, mode)]
  return Promise.all(issuers.map((issuer) => subjectBanKey(issuer, value, mode)))
}
