/**
 * Keys that several records write, such as the cutoff of a subject that was revoked twice. The
 * records are the owners of the key. If one is removed, the key keeps the value that the other owners
 * and other writers need.
 */
import type { $ZodType, output } from 'zod/v4/core'
import { FEED_KEY, OWNERS_PREFIX } from '../../redis/keys.ts'
import {
  createRecordList,
  type RecordList,
  type RecordListOptions,
} from '../../redis/record-list.ts'
import { ADD_OWNER_SCRIPT, REMOVE_OWNER_SCRIPT } from './scripts.generated.ts'

/** A record that writes shared keys. Each key has the largest value of its owners. */
interface Owner {
  readonly id: string
  readonly createdAtSeconds: number
  /** When the record and its values expire, in seconds since the epoch. */
  readonly expiresAtSeconds: number
}

interface OwnerListOptions<Schema extends $ZodType> extends RecordListOptions<Schema> {
  /** Returns the keys that a record writes, which `admit` reads. */
  sharedKeysOf(record: output<Schema>): Promise<readonly string[]>
}

interface OwnerList<Record> extends Pick<RecordList<Record>, 'list' | 'find'> {
  /**
   * Stores a record, its index entries and its keys in one atomic step. `value` is a positive
   * integer. A key with a value from `value` up to `value + raiseBelow - 1` gets a larger value.
   */
  add(record: Record, value: number, raiseBelow?: number): Promise<void>
  /** Removes a record with its index entries and values. Returns false if it does not exist. */
  remove(id: string): Promise<boolean>
}

/** Creates the list. Its methods throw `Unavailable` as those of a {@link RecordList} do. */
export function createOwnerList<Schema extends $ZodType<Owner>>(
  options: OwnerListOptions<Schema>,
): OwnerList<output<Schema>> {
  const { keysOf, run, find, list } = createRecordList(options)

  async function keysWith(record: output<Schema>): Promise<string[]> {
    const own = keysOf(record.id)
    return [own.record, own.index, own.ends, ...withOwners(await options.sharedKeysOf(record))]
  }

  return {
    list,
    find,

    async add(record, value, raiseBelow = 0) {
      const { id, createdAtSeconds, expiresAtSeconds } = record
      const times = [expiresAtSeconds, createdAtSeconds]
      const args = [id, JSON.stringify(record), value, ...times, raiseBelow]
      await run(ADD_OWNER_SCRIPT, await keysWith(record), args)
    },

    async remove(id) {
      const record = await find(id)
      if (record === undefined) return false
      const nowSeconds = Math.floor(options.now() / 1000)
      return (await run(REMOVE_OWNER_SCRIPT, await keysWith(record), [id, nowSeconds])) === 1
    },
  }
}

/** Returns the key of the feed, followed by each shared key and the key of its owners. */
export function withOwners(keys: readonly string[]): string[] {
  return [FEED_KEY, ...keys.flatMap((key) => [key, OWNERS_PREFIX + key])]
}
