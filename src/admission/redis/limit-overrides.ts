/** Operator controls of one window of a limit: override the limit, or reset the count. */
import { v7 } from 'uuid'
import type { RedisConnection } from '../../redis/connection.ts'
import { LIMIT_OVERRIDE_SUFFIX, type RedisKeys } from '../../redis/keys.ts'
import { createRecordList, NEVER_ENDS } from '../../redis/record-list.ts'
import { malformed, sendCommand } from '../../redis/reply.ts'
import {
  type LimitControls,
  type LimitOverrideRecord,
  type OverrideList,
  overrideSchema,
} from '../limit-override.ts'
import { CREATE_OVERRIDE_SCRIPT, REMOVE_OVERRIDE_SCRIPT } from './scripts.generated.ts'

/** Returns the key of a window's override. The value is the number of requests. */
export const overrideKey = (keys: RedisKeys, limitKey: string): string =>
  keys.limitOverride + limitKey + LIMIT_OVERRIDE_SUFFIX

/** Returns the key of an exact window. The other limiter appends `:` and the number of a window. */
export const counterName = (keys: RedisKeys, limitKey: string): string => keys.limit + limitKey

/** Creates the controls. `now` is in milliseconds since the epoch. */
export function createLimitControls(
  redis: RedisConnection,
  now: () => number = Date.now,
): LimitControls {
  const { keys } = redis
  return {
    async override({ key, requests, ttlSeconds }) {
      for (const number of [requests, ttlSeconds ?? 1]) {
        if (!Number.isSafeInteger(number) || number < 1)
          throw new RangeError(`limit override: needs integers above 0, not ${number}`)
      }
      const life = ttlSeconds === undefined ? [] : ['EX', ttlSeconds]
      await sendCommand(redis, ['SET', overrideKey(keys, key), requests, ...life])
    },
    async lift(key) {
      await sendCommand(redis, ['DEL', overrideKey(keys, key)])
    },
    async reset({ key, windowSeconds }) {
      const current = Math.floor(now() / (windowSeconds * 1000))
      // Include the next window: an isolate with a fast clock may have begun it.
      const numbers = [current - 1, current, current + 1]
      const counters = numbers.map((number) => `${counterName(keys, key)}:${number}`)
      await sendCommand(redis, ['DEL', counterName(keys, key), ...counters])
    },
  }
}

/** Creates the list. `now` is in milliseconds since the epoch. */
export function createOverrideList(redis: RedisConnection, now: () => number): OverrideList {
  const list = createRecordList({
    redis,
    ...redis.keys.limitOverrideRecords,
    schema: overrideSchema,
    now,
  })

  function keysOf({ id, windows }: LimitOverrideRecord): string[] {
    const ofWindow = (window: string) => [
      overrideKey(redis.keys, window),
      redis.keys.limitOwner + window,
    ]
    return [...list.keysOf(id), ...windows.flatMap(ofWindow)]
  }

  return {
    find: list.find,
    list: list.list,

    async create({ limit, value, issuer, windows, requests, expiresInSeconds, createdBy }) {
      const createdAtSeconds = Math.floor(now() / 1000)
      const record: LimitOverrideRecord = {
        id: v7(),
        limit,
        value,
        issuer: issuer ?? null,
        requests,
        windows: [...windows],
        createdAtSeconds,
        createdBy,
        expiresAtSeconds:
          expiresInSeconds === undefined ? null : createdAtSeconds + expiresInSeconds,
      }
      const { id } = record
      const end = record.expiresAtSeconds ?? NEVER_ENDS
      const life = expiresInSeconds ?? 0
      const prefixes = [redis.keys.limitOverrideRecords.prefix, redis.keys.limitOwner]
      const values = [id, JSON.stringify(record), requests, life, end, ...prefixes]
      const done = await list.run(CREATE_OVERRIDE_SCRIPT, keysOf(record), values)
      if (done !== 1) throw malformed()
      return record
    },

    async remove(id) {
      const record = await list.find(id)
      if (record === undefined) return false
      return (await list.run(REMOVE_OVERRIDE_SCRIPT, keysOf(record), [id])) === 1
    },
  }
}
