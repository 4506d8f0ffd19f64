/** Overrides of limits: the keys that the limiters read, and the list that operators manage. */
import { v7 } from 'uuid'
import { Unavailable } from '../../errors.ts'
import { createRecordList, NEVER_ENDS } from '../../redis/record-list.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { type LimitOverrideRecord, type OverrideList, overrideSchema } from '../limit-override.ts'
import { overrideKey } from './limit-overrides.ts'

/** Keys that contain the id of the record that owns a window's override. */
const OWNER_PREFIX = 'pc:limit-owner:'

/**
 * Stores an override. Each window has one override and one record that owns it. An earlier record
 * is deleted when other records own all of its windows.
 *
 * KEYS: record, index, ends, then for each window its override and its owner. ARGV: id, record,
 * requests, TTL in seconds (0: none), end, prefix of records, prefix of owners.
 */
const CREATE_SCRIPT = `
local life = tonumber(ARGV[4])
local function put(key, value)
  if life > 0 then redis.call('SET', key, value, 'EX', life) else redis.call('SET', key, value) end
end
local earlier = {}
for n = 4, #KEYS, 2 do
  local owner = redis.call('GET', KEYS[n + 1])
  if owner then earlier[owner] = true end
  put(KEYS[n], ARGV[3])
  put(KEYS[n + 1], ARGV[1])
end
for id in pairs(earlier) do
  local text = redis.call('GET', ARGV[6] .. id)
  local left = false
  for _, window in ipairs(text and cjson.decode(text).windows or {}) do
    if redis.call('GET', ARGV[7] .. window) == id then left = true end
  end
  if not left then
    redis.call('DEL', ARGV[6] .. id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZREM', KEYS[3], id)
  end
end
put(KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
`

/** KEYS: as above. ARGV: id. Windows that another record owns are not changed. */
const REMOVE_SCRIPT = `
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
for n = 4, #KEYS, 2 do
  if redis.call('GET', KEYS[n + 1]) == ARGV[1] then redis.call('DEL', KEYS[n], KEYS[n + 1]) end
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
`

/** Creates the list. `now` is in milliseconds since the epoch. */
export function createOverrideList(rest: RedisRest, now: () => number): OverrideList {
  const prefix = 'pc:limit-override-record:'
  const list = createRecordList({
    rest,
    prefix,
    index: 'pc:limit-overrides',
    schema: overrideSchema,
    now,
  })

  function keysOf({ id, windows }: LimitOverrideRecord): string[] {
    const { record, index, ends } = list.keysOf(id)
    const ofWindows = windows.flatMap((window) => [overrideKey(window), OWNER_PREFIX + window])
    return [record, index, ends, ...ofWindows]
  }

  return {
    find: (id) => list.find(id),
    list: (page) => list.list(page),

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
      const values = [id, JSON.stringify(record), requests, life, end, prefix, OWNER_PREFIX]
      const done = await list.run(CREATE_SCRIPT, keysOf(record), values)
      if (done !== 1) throw new Unavailable('redis', 'malformed')
      return record
    },

    async remove(id) {
      const record = await list.find(id)
      if (record === undefined) return false
      return (await list.run(REMOVE_SCRIPT, keysOf(record), [id])) === 1
    },
  }
}
