/** Records of references in Upstash Redis: one JSON text each, as the script `admit` reads it. */
import { malformed, sendCommand } from '../../redis/reply.ts'
import type { RedisRest } from '../../redis/rest.ts'
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
  rest: RedisRest,
  now: () => number = Date.now,
): ReferenceStore {
  return {
    async put(hash, record) {
      const { expiresAtSeconds } = record
      const untilSeconds = (expiresAtSeconds ?? 0) + REFERENCE_TOLERANCE_SECONDS
      const ttlSeconds = Math.max(1, Math.ceil(untilSeconds - now() / 1000))
      const expiry = expiresAtSeconds === null ? [] : ['EX', ttlSeconds]
      const text = await storedReference(record)
      const reply = await sendCommand(rest, ['SET', rest.keys.reference + hash, text, ...expiry])
      if (reply !== 'OK') throw malformed()
    },
    async find(hash) {
      const text = await sendCommand(rest, ['GET', rest.keys.reference + hash])
      return text === null ? undefined : parseStoredReference(text)
    },
    async remove(hash) {
      const reply = await sendCommand(rest, ['DEL', rest.keys.reference + hash])
      if (reply !== 0 && reply !== 1) throw malformed()
    },
  }
}
