/** Redis behind the local Upstash REST server, as a process of its own that counts its calls. */
import { subscribe } from 'node:diagnostics_channel'
import { startRedis } from '../../dev/redis.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import type { RedisCounts } from '../backends.ts'

const counts = { calls: 0 } satisfies RedisCounts

// Node's own channel: counting costs no proxy between the gateway and its Redis.
subscribe('http.server.request.start', () => {
  counts.calls++
})

const redis = await startRedis()
const rest = await startUpstashRest({ port: 0, token: process.env.REST_TOKEN ?? '', redis })
process.send?.({ url: rest.url, kind: redis.kind })
process.on('message', () => process.send?.(counts))
process.on('disconnect', async () => {
  await rest.close()
  await redis.close()
  process.exit()
})
// The parent ends this; Ctrl-C reaches the whole group.
process.on('SIGINT', () => {})
