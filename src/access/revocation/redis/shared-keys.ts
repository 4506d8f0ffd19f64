/**
 * Keys that several records write, such as the cutoff of a subject that was revoked twice. The
 * records are the owners of the key. If one is removed, the key keeps the value that the other owners
 * and other writers need.
 */
import type { $ZodType, output } from 'zod/v4/core'
import type { RedisConnection } from '../../../redis/connection.ts'
import type { RedisKeys } from '../../../redis/keys.ts'
import { createRecordList, type RecordListOptions } from '../../../redis/record-list.ts'
import { readCount, readList, readSeconds, readText, sendCommand } from '../../../redis/reply.ts'
import { ADD_OWNER_SCRIPT, RELEASE_OWNER_SCRIPT } from '../../../redis/scripts.generated.ts'
import { writeFacts } from './facts.ts'

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
  /** Returns the only subject that a record concerns. Undefined: it concerns any number of subjects. */
  subjectOf(record: output<Schema>): string | undefined
}

/** Creates the list. Its methods throw `Unavailable` as those of {@link createRecordList} do. */
export function createOwnerList<Schema extends $ZodType<Owner>>(options: OwnerListOptions<Schema>) {
  const { keysOf, run, find, list, keptSeconds, forget } = createRecordList(options)
  const { redis, now } = options

  /** Runs a script with the record and its keys, in the control lane and then in the others. */
  async function change(
    record: output<Schema>,
    script: string,
    args: readonly (string | number)[],
  ): Promise<number> {
    const shared = await options.sharedKeysOf(record)
    const keys = [...keysOf(record.id), ...withOwners(redis.keys, shared)]
    const subject = options.subjectOf(record)
    const facts = shared.map((key) => ({ key, subject }))
    return writeFacts(redis, facts, now, (control) => run(script, keys, args, control))
  }

  return {
    list,
    find,

    /**
     * Stores a record, its index entries and its keys in one atomic step. `value` is a positive
     * integer. A key with a value from `value` up to `value + raiseBelow - 1` gets a larger value.
     */
    async add(record: output<Schema>, value: number, raiseBelow = 0): Promise<void> {
      const { id, createdAtSeconds, expiresAtSeconds } = record
      const times = [expiresAtSeconds, createdAtSeconds]
      const args = [id, JSON.stringify(record), value, ...times, raiseBelow]
      await change(record, ADD_OWNER_SCRIPT, args)
    },

    /**
     * Removes a record with its index entries and values. Returns false if it does not exist. With lanes
     * or replicas, the record is removed after all of them have lost its values, so that the call can be repeated until then.
     */
    async remove(id: string): Promise<boolean> {
      const record = await find(id)
      if (record === undefined) return false
      const args = [id, Math.floor(now() / 1000), keptSeconds]
      const removed = readCount(await change(record, RELEASE_OWNER_SCRIPT, args), 1)
      // 0: the fact no longer exists. The first attempt of this call may have removed it, and its reply was lost.
      if (removed === 1) await forget(id)
      return true
    },
  }
}

/** Returns the earliest second that keys have. Undefined: a key is absent. */
export async function earliestSecond(
  redis: RedisConnection,
  keys: readonly string[],
): Promise<number | undefined> {
  if (keys.length === 0) return undefined
  const values = readList(await sendCommand(redis, ['MGET', ...keys]), keys.length)
  if (values.includes(null)) return undefined
  return Math.min(...values.map((value) => readSeconds(readText(value))))
}

/** Returns the key of the feed, followed by each shared key and the key of its owners. */
export function withOwners({ feed, owners }: RedisKeys, keys: readonly string[]): string[] {
  return [feed, ...keys.flatMap((key) => [key, owners + key])]
}
