/** Clients that have registered themselves, in Redis: a record for each, with an expiry. */
import type { RedisConnection } from '../../../redis/connection.ts'
import { codeKeys } from '../../../redis/keys.ts'
import { malformed, readCount, sendCommand } from '../../../redis/reply.ts'
import { parseClient } from '../../authorization-server/redis/client-record.ts'
import { isRegisteredId, type RegisteredClients } from '../registration/registered-clients.ts'

/** Creates the adapter. */
export function createRegisteredClients(redis: RedisConnection): RegisteredClients {
  const { registeredClient } = codeKeys(redis.keys)
  const keyOf = (id: string) => registeredClient + id
  return {
    async put(client, ttlSeconds) {
      const command = ['SET', keyOf(client.id), JSON.stringify(client), 'EX', ttlSeconds, 'NX']
      if ((await sendCommand(redis, command)) !== 'OK') throw malformed()
    },
    async find(id) {
      if (!isRegisteredId(id)) return undefined
      const text = await sendCommand(redis, ['GET', keyOf(id)])
      return text === null ? undefined : parseClient(text)
    },
    async keep(id, ttlSeconds) {
      readCount(await sendCommand(redis, ['EXPIRE', keyOf(id), ttlSeconds]), 1)
    },
  }
}
