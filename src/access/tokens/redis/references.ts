/** Records of references in Upstash Redis: one JSON text each, as the script `admit` reads it. */

import type { RedisConnection } from '../../../redis/connection.ts'
import { credentialLane, searchLanes } from '../../../redis/lanes.ts'
import { malformed, sendCommand } from '../../../redis/reply.ts'
import { REFERENCE_TOLERANCE_SECONDS, type ReferenceStore, storedReference } from '../reference.ts'
import { parseStoredReference } from '../reference-record.ts'

/**
 * Creates the adapter. A text that is not exactly a record is `Unavailable`, never "unknown". The
 * record of an API key without expiry is stored until it is removed. `now` returns milliseconds.
 *
 * On a cluster, a record is in the lane of its subject. The lane of its hash, if it is another one, has a
 * note of that, and earlier versions stored the record in the control lane.
 */
export function createReferenceStore(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): ReferenceStore {
  return {
    ...(redis.lanes && { draw: redis.lanes.draw }),
    async put(hash, record) {
      const { expiresAtSeconds, subject } = record
      const untilSeconds = (expiresAtSeconds ?? 0) + REFERENCE_TOLERANCE_SECONDS
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      const expiry = expiresAtSeconds === null ? [] : ['EX', ttlSeconds]
      const lane = credentialLane(redis, subject)
      const text = await storedReference(record)
      const reply = await sendCommand(lane, ['SET', lane.keys.reference + hash, text, ...expiry])
      if (reply !== 'OK') throw malformed()
      await redis.lanes?.point(hash, lane, expiresAtSeconds === null ? undefined : ttlSeconds)
    },
    async find(hash) {
      const known = await searchLanes(redis, hash, (lane) => readReference(lane, hash))
      return known && parseStoredReference(known.found)
    },
    async remove(hash) {
      await searchLanes(redis, hash, async (lane) => {
        const reply = await sendCommand(lane, ['DEL', lane.keys.reference + hash])
        if (reply !== 0 && reply !== 1) throw malformed()
        return reply === 1 ? true : undefined
      })
    },
  }
}

/** Returns the text of a record, if the lane has it. */
export async function readReference(lane: RedisConnection, hash: string): Promise<unknown> {
  return (await sendCommand(lane, ['GET', lane.keys.reference + hash])) ?? undefined
}
