/** Authorization requests that wait in Redis: one JSON text for each. */
import * as z from 'zod/mini'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { codeKeys } from '../../../redis/keys.ts'
import { credentialLane, searchLanes } from '../../../redis/lanes.ts'
import { malformed, recordIn, sendCommand } from '../../../redis/reply.ts'
import {
  authorizationSchema,
  pushedSchema,
  type WaitingRequest,
  type WaitingRequests,
} from '../waiting-request.ts'

const schema = z.discriminatedUnion('kind', [authorizationSchema, pushedSchema])

/** Creates the adapter. On a cluster, a request is in the lane of its hash, or in the control lane as in earlier versions. */
export function createWaitingRequests(redis: RedisConnection): WaitingRequests {
  const keyIn = (lane: RedisConnection, hash: string) =>
    codeKeys(lane.keys).authorizationRequest + hash
  async function search(
    hash: string,
    read: (lane: RedisConnection) => Promise<unknown>,
  ): Promise<WaitingRequest | undefined> {
    const known = await searchLanes(redis, hash, async (lane) => (await read(lane)) ?? undefined)
    return known && recordIn(known.found, schema)
  }
  return {
    async put(hash, request, ttlSeconds) {
      const lane = credentialLane(redis, hash)
      const command = ['SET', keyIn(lane, hash), JSON.stringify(request), 'EX', ttlSeconds]
      if ((await sendCommand(lane, command)) !== 'OK') throw malformed()
    },
    async replace(hash, request, ttlSeconds) {
      const known = await searchLanes(redis, hash, async (lane) => {
        const command = ['SET', keyIn(lane, hash), JSON.stringify(request), 'XX', 'EX', ttlSeconds]
        const reply = await sendCommand(lane, command)
        if (reply !== 'OK' && reply !== null) throw malformed()
        return reply ?? undefined
      })
      return known !== undefined
    },
    find: (hash) => search(hash, (lane) => sendCommand(lane, ['GET', keyIn(lane, hash)])),
    take: (hash) =>
      // Not repeated: the second call would find that the request was taken.
      search(hash, (lane) => sendCommand(sentOnce(lane), ['GETDEL', keyIn(lane, hash)])),
  }
}
