/** Records of references in Upstash Redis: one JSON text each, as the script `admit` reads it. */

import type { RedisConnection } from '../../../redis/connection.ts'
import { malformed, sendCommand } from '../../../redis/reply.ts'
import {
  parseStoredReference,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceStore,
  storedReference,
} from '../reference.ts'

/**
 * Creates the adapter. A text that is not exactly a record is `Unavailable`, never "unknown". The
 * record of an API key without expiry is stored until it is removed. `now` returns milliseconds.
 */
export function createReferenceStore(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): ReferenceStore {
  return {
    async put(hash, record) {
      const { expiresAtSeconds } = record
      const untilSeconds = (expiresAtSeconds ?? 0) + REFERENCE_TOLERANCE_SECONDS
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      const expiry = expiresAtSeconds === null ? [] : ['EX', ttlSeconds]
      const text = await storedReference(record)
      const reply = await sendCommand(redis, ['SET', redis.keys.reference + hash, text, ...expiry])
      if (reply !== 'OK') throw malformed()
    },
    async find(hash) {
      const text = await sendCommand(redis, ['GET', redis.keys.reference + hash])
      return text === null ? undefined : parseStoredReference(text)
    },
    async remove(hash) {
      const reply = await sendCommand(redis, ['DEL', redis.keys.reference + hash])
      if (reply !== 0 && reply !== 1) throw malformed()
    },
  }
}
