/** Redis behind the local Upstash REST server, as a process of its own that counts its calls. */
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { startRedis } from '../../dev/redis.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import type { RedisCounts } from '../backends.ts'

/** Keys of what the gateway writes by the clock, or where its queue is late, behind any answer. */
const BEHIND_ANSWERS = /"pc:(?:metrics|audit):/

const counts = { calls: 0 } satisfies RedisCounts

// Node's own channel: counting costs no proxy between the gateway and its Redis.
subscribe('http.server.request.start', (message) => {
  const { request } = message as { request: IncomingMessage }
  let body = ''
  // Sees what the server reads, and reads nothing itself.
  request.on('data', (chunk: Buffer) => {
    body += chunk.toString('latin1')
  })
  request.on('end', () => {
    if (!BEHIND_ANSWERS.test(body)) counts.calls++
  })
})

const redis = await startRedis()
const rest = await startUpstashRest({ port: 0, token: process.env.REST_TOKEN ?? '', redis })
process.send?.({ url: rest.url, kind: redis.kind, directUrl: redis.url })
process.on('message', () => process.send?.(counts))
process.on('disconnect', async () => {
  await rest.close()
  await redis.close()
  process.exit()
})
// The parent ends this; Ctrl-C reaches the whole group.
process.on('SIGINT', () => {})
