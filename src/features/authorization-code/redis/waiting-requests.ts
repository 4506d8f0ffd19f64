/** Authorization requests that wait in Redis: one JSON text for each. */
import * as z from 'zod/mini'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { codeKeys } from '../../../redis/keys.ts'
import { malformed, recordIn, sendCommand } from '../../../redis/reply.ts'
import { authorizationSchema, pushedSchema, type WaitingRequests } from '../waiting-request.ts'

const schema = z.discriminatedUnion('kind', [authorizationSchema, pushedSchema])

/** Creates the adapter. */
export function createWaitingRequests(redis: RedisConnection): WaitingRequests {
  // A retried command would find that the request was taken.
  const once = sentOnce(redis)
  const { authorizationRequest } = codeKeys(redis.keys)
  const keyOf = (hash: string) => authorizationRequest + hash
  const read = (text: unknown) => (text === null ? undefined : recordIn(text, schema))
  return {
    async put(hash, request, ttlSeconds) {
      const command = ['SET', keyOf(hash), JSON.stringify(request), 'EX', ttlSeconds]
      if ((await sendCommand(redis, command)) !== 'OK') throw malformed()
    },
    async replace(hash, request, ttlSeconds) {
      const command = ['SET', keyOf(hash), JSON.stringify(request), 'XX', 'EX', ttlSeconds]
      const reply = await sendCommand(redis, command)
      if (reply !== 'OK' && reply !== null) throw malformed()
      return reply === 'OK'
    },
    find: async (hash) => read(await sendCommand(redis, ['GET', keyOf(hash)])),
    take: async (hash) => read(await sendCommand(once, ['GETDEL', keyOf(hash)])),
  }
}
