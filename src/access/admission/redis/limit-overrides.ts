/** Operator controls of one window of a limit: override the limit, or reset the count. */
import type { RedisConnection } from '../../../redis/connection.ts'
import { LIMIT_OVERRIDE_SUFFIX, type RedisKeys, recordKeys } from '../../../redis/keys.ts'
import { allLanes } from '../../../redis/lanes.ts'
import { createOwners } from '../../../redis/owners.ts'
import { sendCommand } from '../../../redis/reply.ts'
import { writeFacts } from '../../revocation/redis/facts.ts'
import { type LimitControls, type OverrideList, overrideSchema } from '../limit-override.ts'

/** Returns the key of a window's override. The value is the number of requests. */
export const overrideKey = (keys: RedisKeys, limitKey: string): string =>
  keys.limitOverride + limitKey + LIMIT_OVERRIDE_SUFFIX

/** Returns the key of an exact window. The other limiter appends `:` and the number of a window. */
export const counterName = (keys: RedisKeys, limitKey: string): string => keys.limit + limitKey

/** Creates the controls. `now` is in milliseconds since the epoch. */
export function createLimitControls(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): LimitControls {
  const { keys } = redis
  return {
    async override({ key, requests, ttlSeconds }) {
      for (const number of [requests, ttlSeconds ?? 1]) {
        if (!Number.isSafeInteger(number) || number < 1)
          throw new RangeError(`limit override: needs integers above 0, not ${number}`)
      }
      const life = ttlSeconds === undefined ? [] : ['EX', ttlSeconds]
      const name = overrideKey(keys, key)
      await writeFacts(redis, [{ key: name }], now, (control) =>
        sendCommand(control, ['SET', name, requests, ...life]),
      )
    },
    async lift(key) {
      const name = overrideKey(keys, key)
      await writeFacts(redis, [{ key: name }], now, (control) =>
        sendCommand(control, ['DEL', name]),
      )
    },
    async reset({ key, windowSeconds }) {
      const current = Math.floor(now() / (windowSeconds * 1000))
      // Include the next window: an isolate with a fast clock may have begun it.
      const numbers = [current - 1, current, current + 1]
      // The party of the window may be in any lane.
      const calls = allLanes(redis).map((lane) => {
        const counters = numbers.map((number) => `${counterName(lane.keys, key)}:${number}`)
        return sendCommand(lane, ['DEL', counterName(lane.keys, key), ...counters])
      })
      await Promise.all(calls)
    },
  }
}

/** Creates the list. `now` is in milliseconds since the epoch. */
export const createOverrideList = (redis: RedisConnection, now: () => number): OverrideList =>
  createOwners({
    redis,
    records: recordKeys(redis.keys).limitOverrideRecords,
    owner: recordKeys(redis.keys).limitOwner,
    schema: overrideSchema,
    now,
    keyOf: (window) => overrideKey(redis.keys, window),
    settingOf: ({ requests }) => requests,
    // The party of a window may be in any lane.
    write: (facts, run) => writeFacts(redis, facts, now, run),
  })
