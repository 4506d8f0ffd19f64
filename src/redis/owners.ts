/** Records that set the value of keys, their windows, in Redis. */

import * as z from 'zod/mini'
import { recordId } from '../isolate/random-ids.ts'
import type { Owner, Owners } from '../validators/owner.ts'
import type { Fact, RedisConnection } from './connection.ts'
import { createRecordList, NEVER_ENDS } from './record-list.ts'
import { malformed, readCount, readText, sendCommand } from './reply.ts'
import { CREATE_OWNER_SCRIPT, REMOVE_OWNER_SCRIPT } from './scripts.generated.ts'

interface OwnersOptions<Item extends Owner> {
  readonly redis: RedisConnection
  /** The names of the list of records. */
  readonly records: { readonly prefix: string; readonly index: string }
  /** A window's owner is stored at this prefix followed by the window. */
  readonly owner: string
  readonly schema: z.ZodMiniType<Item>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Returns the key of a window. */
  keyOf(window: string): string
  /** Returns the value of the keys that a record sets. */
  settingOf(record: Item): string | number
  /** Runs the script that writes these facts. */
  write(facts: readonly Fact[], run: (control: RedisConnection) => Promise<number>): Promise<number>
}

/** Creates the store. A record, the values that it sets and its place in the list change together. */
export function createOwners<Item extends Owner>({
  redis,
  records,
  owner,
  schema,
  now,
  keyOf,
  settingOf,
  write,
}: OwnersOptions<Item>): Owners<Item> {
  const list = createRecordList({ redis, ...records, schema, now })

  const keysOf = (id: string, windows: readonly string[]): string[] => [
    ...list.keysOf(id),
    ...windows.flatMap((window) => [keyOf(window), owner + window]),
  ]

  const factsOf = (record: Item) => record.windows.map((window) => ({ key: keyOf(window) }))

  return {
    find: list.find,
    list: list.list,

    async ownerOf(window) {
      const id = await sendCommand(redis, ['GET', owner + window])
      return id === null ? undefined : list.find(readText(id))
    },

    async create({ expiresInSeconds, ...order }) {
      const createdAtSeconds = Math.floor(now() / 1000)
      const record = z.parse(schema, {
        ...order,
        id: recordId(),
        issuer: order.issuer ?? null,
        createdAtSeconds,
        expiresAtSeconds:
          expiresInSeconds === undefined ? null : createdAtSeconds + expiresInSeconds,
      })
      const end = record.expiresAtSeconds ?? NEVER_ENDS
      const values = [
        record.id,
        JSON.stringify(record),
        settingOf(record),
        expiresInSeconds ?? 0,
        end,
      ]
      const keys = keysOf(record.id, record.windows)
      const done = await write(factsOf(record), (control) =>
        list.run(CREATE_OWNER_SCRIPT, keys, [...values, records.prefix, owner], control),
      )
      if (done !== 1) throw malformed()
      return record
    },

    async remove(id) {
      const record = await list.find(id)
      if (record === undefined) return false
      const keys = keysOf(id, record.windows)
      const values = [id, Math.floor(now() / 1000), list.keptSeconds]
      const done = await write(factsOf(record), (control) =>
        list.run(REMOVE_OWNER_SCRIPT, keys, values, control),
      )
      // 0: the record no longer exists. The first attempt of this call may have removed it, and its reply was lost.
      if (readCount(done, 1) === 1) await list.forget(id)
      return true
    },
  }
}
