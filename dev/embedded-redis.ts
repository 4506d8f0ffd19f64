/**
 * The Redis for machines that have none: `js-redis-server`, in this process, on loopback. It
 * keeps to Redis 8 semantics; the commands that it lacks and local use needs are added here.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import {
  type CommandDefinition,
  createRedisCommandExecutor,
  defineCommand,
  RedisResult,
  RedisServerState,
  RedisValue,
  Resp2Server,
  t,
} from 'js-redis-server/core'

const HOST = '127.0.0.1'
/** As many as a real Redis has. */
const DATABASES = 16

/** ECHO: https://redis.io/docs/latest/commands/echo */
const echo = defineCommand({
  name: 'echo',
  schema: t.object({ message: t.bulk() }),
  flags: ['readonly', 'fast'],
  keys: () => [],
  execute: ({ message }) => RedisResult.create(RedisValue.bulkString(message)),
})

/** Starts it on a free port. `close()` drops its connections and its data. */
export async function startEmbeddedRedis(): Promise<{ url: string; close(): Promise<void> }> {
  const redis = new Resp2Server({
    server: new RedisServerState({ databaseCount: DATABASES }),
    executor: createRedisCommandExecutor({ extraCommands: [echo as CommandDefinition] }),
  })
  const sockets = new Set<Socket>()
  redis.server.on('connection', (socket) => {
    // It writes reply by reply, which Nagle's algorithm would hold back.
    socket.setNoDelay(true)
    sockets.add(socket.once('close', () => sockets.delete(socket)))
  })
  // Its own listen() would take every interface.
  redis.server.listen(0, HOST)
  await once(redis.server, 'listening')
  return {
    url: `redis://${HOST}:${redis.getPort()}`,
    async close() {
      const closed = redis.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
