/**
 * Embedded Redis for machines without one: `js-redis-server` in this process, on loopback. It
 * follows Redis 8 semantics. This file adds commands that it lacks and local use needs.
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
/** The default of a real Redis. */
const DATABASES = 16

/** ECHO: https://redis.io/docs/latest/commands/echo */
const echo = defineCommand({
  name: 'echo',
  schema: t.object({ message: t.bulk() }),
  flags: ['readonly', 'fast'],
  keys: () => [],
  execute: ({ message }) => RedisResult.create(RedisValue.bulkString(message)),
})

/** Starts the server on a free port. `close()` closes its connections and drops its data. */
export async function startEmbeddedRedis(): Promise<{ url: string; close(): Promise<void> }> {
  const redis = new Resp2Server({
    server: new RedisServerState({ databaseCount: DATABASES }),
    executor: createRedisCommandExecutor({ extraCommands: [echo as CommandDefinition] }),
  })
  const sockets = new Set<Socket>()
  redis.server.on('connection', (socket) => {
    // The server writes each reply separately, and Nagle's algorithm would delay them.
    socket.setNoDelay(true)
    sockets.add(socket.once('close', () => sockets.delete(socket)))
  })
  // The server's own listen() would listen on all interfaces.
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
